package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

const page = `<!DOCTYPE html>
<HTML><head><link rel="stylesheet" HREF=/style.css><title><a href="/title"></title></head>
<!-- <a href="/comment"> --><body background='/back.png'>
<a href="/rewriteme?x=1&amp;y=2#z">one</a><a href="relative">two</a><a href="https://example.com/">three</a><img src="/a.png"/>
<script src="/code.js">"<a href='/script'>"</script></body></HTML>
`

// website answers over HTTP until SIGTERM, so that what passes through the API server can be seen on the other side.
type website struct {
	seen     atomic.Int64
	released chan struct{}
}

func serveHTTP(port string) {
	site := &website{released: make(chan struct{}, 16)}
	handlers := map[string]http.HandlerFunc{
		"/page": site.page, "/redirect": site.redirect, "/drip": site.drip, "/release": site.release,
		"/upload": site.upload, "/seen": site.report, "/switch": site.upgrade, "/refuse": site.refuse,
		"/break": site.hangUp,
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if found := handlers[r.URL.Path]; found != nil {
			found(w, r)
			return
		}
		site.mirror(w, r)
	})
	go func() { must(0, http.ListenAndServe(":"+port, handler)) }()
	pause()
}

// mirror says what was asked.
func (site *website) mirror(w http.ResponseWriter, r *http.Request) {
	headers := map[string]string{}
	for name, values := range r.Header {
		headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	body := must(io.ReadAll(r.Body))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Add("Set-Cookie", "a=1")
	w.Header().Add("Set-Cookie", "b=2")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cache-Control", "max-age=60")
	json.NewEncoder(w).Encode(map[string]any{
		"method": r.Method, "target": r.RequestURI, "host": r.Host, "headers": headers, "body": string(body),
	})
}

func (site *website) page(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	io.WriteString(w, page)
}

func (site *website) redirect(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Location", r.URL.Query().Get("to"))
	w.WriteHeader(http.StatusFound)
}

// drip sends a line, and another when it is released.
func (site *website) drip(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, "one\n")
	w.(http.Flusher).Flush()
	<-site.released
	io.WriteString(w, "two\n")
}

func (site *website) release(w http.ResponseWriter, r *http.Request) {
	site.released <- struct{}{}
}

// upload counts what comes while it comes; report says how much that is.
func (site *website) upload(w http.ResponseWriter, r *http.Request) {
	site.seen.Store(0)
	piece := make([]byte, 65536)
	for {
		count, problem := r.Body.Read(piece)
		site.seen.Add(int64(count))
		if problem != nil {
			break
		}
	}
	site.report(w, r)
}

func (site *website) report(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, strconv.FormatInt(site.seen.Load(), 10))
}

// upgrade leaves HTTP for an echo of whatever is sent, after a line with what was asked.
func (site *website) upgrade(w http.ResponseWriter, r *http.Request) {
	connection, buffered, problem := w.(http.Hijacker).Hijack()
	if problem != nil {
		return
	}
	defer connection.Close()
	fmt.Fprintf(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
	fmt.Fprintf(connection, "%s|%s|%s\n", r.RequestURI, r.Header.Get("X-Forwarded-For"), r.Header.Get("Authorization"))
	io.Copy(connection, buffered)
}

func (site *website) refuse(w http.ResponseWriter, r *http.Request) {
	http.Error(w, "no", http.StatusTeapot)
}

// hangUp ends the connection in the middle of an answer.
func (site *website) hangUp(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, "half")
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}
