package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// size prints "COLUMNS ROWS" of the terminal now and at every change, so that a client's resize can be tested.
func size() {
	changes := make(chan os.Signal, 16)
	signal.Notify(changes, syscall.SIGWINCH)
	go func() {
		printSize()
		for range changes {
			printSize()
		}
	}()
	pause()
}

func printSize() {
	var window struct{ rows, columns, x, y uint16 }
	_, _, problem := syscall.Syscall(syscall.SYS_IOCTL, os.Stdin.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&window)))
	if problem != 0 {
		fmt.Println("no terminal")
		return
	}
	fmt.Println(window.columns, window.rows)
}
