module navarch.test/podimage

go 1.26.0
