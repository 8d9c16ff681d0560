// Command load posts admission reviews over HTTP/1.1 and TLS, as kube-apiserver does, and reports how they were answered.
//
// With a rate, reviews are due at an even pace and are sent by whichever connection is free: the latency of a review that
// had to wait for a connection counts from the moment at which it was due. Without a rate, every connection sends its next
// review as soon as the last was answered.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// placeholder is the uid in every body; each request gets another of the same length.
const placeholder = "00000000-0000-0000-0000-000000000000"

// review is one line of the file of reviews.
type review struct {
	Path    string `json:"path"`
	Body    string `json:"body"`
	Patched bool   `json:"patched"`

	head, tail []byte
}

type load struct {
	address  string
	trusted  *tls.Config
	reviews  []review
	interval time.Duration
	end      time.Time
	began    time.Time
	next     atomic.Int64

	lock      sync.Mutex
	latencies []time.Duration
	failures  []string
}

func main() {
	address := flag.String("address", "", "host:port of the server")
	authority := flag.String("authority", "", "file with the CA")
	reviews := flag.String("reviews", "", "file with a review per line, sent in turns")
	connections := flag.Int("connections", 16, "connections, kept alive")
	rate := flag.Float64("rate", 0, "reviews per second; 0 for as many as are answered")
	seconds := flag.Float64("seconds", 30, "how long")
	flag.Parse()
	work := &load{address: *address, trusted: trusting(*authority), reviews: read(*reviews), began: time.Now()}
	work.end = work.began.Add(time.Duration(*seconds * float64(time.Second)))
	if *rate > 0 {
		work.interval = time.Duration(float64(time.Second) / *rate)
	}
	var workers sync.WaitGroup
	for range *connections {
		workers.Go(work.send)
	}
	workers.Wait()
	work.report()
}

func trusting(file string) *tls.Config {
	bundle, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	return &tls.Config{RootCAs: pool, NextProtos: []string{"http/1.1"}}
}

func read(file string) []review {
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	var found []review
	for line := range strings.Lines(string(text)) {
		var each review
		if err := json.Unmarshal([]byte(line), &each); err != nil {
			log.Fatal(err)
		}
		head, tail, ok := strings.Cut(each.Body, placeholder)
		if !ok {
			log.Fatalf("expected the uid %s in a review", placeholder)
		}
		each.head, each.tail = []byte(head), []byte(tail)
		found = append(found, each)
	}
	return found
}

// send posts reviews through one connection until the time is over.
func (l *load) send() {
	connection, err := tls.Dial("tcp", l.address, l.trusted)
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	writer, reader := bufio.NewWriterSize(connection, 4096), bufio.NewReader(connection) // as Go's client
	var latencies []time.Duration
	for {
		number := l.next.Add(1) - 1
		begun, ok := l.wait(number)
		if !ok {
			break
		}
		each := &l.reviews[number%int64(len(l.reviews))]
		uid := fmt.Sprintf("%036d", number)
		if err := l.post(writer, reader, each, uid); err != nil {
			l.lock.Lock()
			l.failures = append(l.failures, err.Error())
			l.lock.Unlock()
			break
		}
		latencies = append(latencies, time.Since(begun))
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.latencies = append(l.latencies, latencies...)
}

// wait returns when a review is due, with the moment from which its latency counts.
func (l *load) wait(number int64) (time.Time, bool) {
	if l.interval == 0 {
		now := time.Now()
		return now, now.Before(l.end)
	}
	due := l.began.Add(time.Duration(number) * l.interval)
	if !due.Before(l.end) {
		return due, false
	}
	if wait := time.Until(due); wait > 0 {
		time.Sleep(wait)
		return time.Now(), true // how late this process woke up is no fault of the server
	}
	return due, true
}

func (l *load) post(writer *bufio.Writer, reader *bufio.Reader, each *review, uid string) error {
	fmt.Fprintf(writer, "POST %s?timeout=10s HTTP/1.1\r\nHost: %s\r\nUser-Agent: kube-apiserver-admission\r\n"+
		"Content-Length: %d\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"+
		"Accept-Encoding: gzip\r\n\r\n", each.Path, l.address, len(each.Body))
	writer.Write(each.head)
	writer.WriteString(uid)
	writer.Write(each.tail)
	if err := writer.Flush(); err != nil {
		return err
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	response.Body.Close()
	text := bytes.ReplaceAll(body, []byte(" "), nil)
	switch {
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("expected 200, got %s: %.500s", response.Status, body)
	case !bytes.Contains(text, []byte(uid)) || !bytes.Contains(text, []byte(`"allowed":true`)):
		return fmt.Errorf("expected that %s is allowed, got %.500s", uid, body)
	case each.Patched != bytes.Contains(text, []byte(`"patch":`)):
		return fmt.Errorf("expected a patch: %t, got %.500s", each.Patched, body)
	case response.Close:
		return errors.New("expected a connection that is kept alive, got one that the server closes")
	}
	return nil
}

func (l *load) report() {
	if len(l.failures) > 0 {
		log.Fatalf("%d connections failed; the first: %s", len(l.failures), l.failures[0])
	}
	took := time.Since(l.began).Seconds()
	slices.Sort(l.latencies)
	count := len(l.latencies)
	json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"wall":    took,
		"count":   float64(count),
		"peak_mb": 0,
		"rate":    float64(count) / took,
		"p50":     l.latencies[(count-1)*50/100].Seconds() * 1000,
		"p99":     l.latencies[(count-1)*99/100].Seconds() * 1000,
	})
}
