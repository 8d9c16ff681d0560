// Command probe is what runs in test pods. It is static and needs nothing around it.
package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: probe COMMAND [ARGUMENT...]
  pause            do nothing until SIGTERM
  serve PORT       echo on TCP until SIGTERM
  http PORT        answer over HTTP until SIGTERM: see http.go
  cat              copy standard input to standard output
  lines N          print N lines, then wait until SIGTERM
  tick             print a line every 100 ms until SIGTERM
  echo WORD...     print the words
  warn WORD...     print the words on standard error
  env              print the environment
  read FILE        print a file
  size             print the terminal's size whenever it changes, until SIGTERM
  exit CODE        end with an exit code
  resolve NAME     print the addresses of a name
  srv NAME         print the targets and ports of a name
  get URL          print what a server answers
  api PATH         print what the API server answers to the pod's service account
  webhook PORT     answer admission reviews until SIGTERM: see network.go`

func main() {
	arguments := append(os.Args[1:], "", "")
	command, argument, rest := arguments[0], arguments[1], os.Args[min(2, len(os.Args)):]
	switch command {
	case "pause":
		pause()
	case "serve":
		serve(argument)
	case "http":
		serveHTTP(argument)
	case "cat":
		must(io.Copy(os.Stdout, os.Stdin))
	case "lines":
		lines(number(argument))
		pause()
	case "tick":
		tick()
	case "echo":
		fmt.Println(strings.Join(rest, " "))
	case "warn":
		fmt.Fprintln(os.Stderr, strings.Join(rest, " "))
	case "env":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "read":
		os.Stdout.Write(must(os.ReadFile(argument)))
	case "size":
		size()
	case "exit":
		os.Exit(number(argument))
	case "resolve":
		resolve(argument)
	case "srv":
		resolveService(argument)
	case "get":
		get(argument)
	case "api":
		askAPI(argument)
	case "webhook":
		review(argument)
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
}

// pause returns at SIGTERM; as process 1 of a container the program gets no signal it does not ask for. It reaps
// what is orphaned to it, which is its duty where containers share a process namespace.
func pause() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			if pid, _ := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 {
				break
			}
		}
	}
}

func serve(port string) {
	listener := must(net.Listen("tcp", ":"+port))
	go func() {
		for {
			connection := must(listener.Accept())
			go func() {
				defer connection.Close()
				io.Copy(connection, connection)
			}()
		}
	}()
	fmt.Println("serving on", listener.Addr())
	pause()
}

func lines(count int) {
	output := bufio.NewWriter(os.Stdout)
	for line := range count {
		fmt.Fprintln(output, "line", line)
	}
	output.Flush()
}

func tick() {
	go func() {
		for tick := 0; ; tick++ {
			fmt.Println("tick", tick)
			time.Sleep(100 * time.Millisecond)
		}
	}()
	pause()
}

func number(text string) int {
	return must(strconv.Atoi(text))
}

func must[T any](value T, problem error) T {
	if problem != nil {
		log.Fatal(problem)
	}
	return value
}
