package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"time"
)

const (
	account  = "/var/run/secrets/kubernetes.io/serviceaccount/"
	patience = 10 * time.Second
)

// resolve prints the addresses of a name, in order, each on its line.
func resolve(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	addresses := must(net.DefaultResolver.LookupHost(ctx, name))
	slices.Sort(addresses)
	for _, address := range addresses {
		fmt.Println(address)
	}
}

// resolveService prints the SRV records of a name such as _http._tcp.web.default.svc.cluster.local.
func resolveService(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, records, problem := net.DefaultResolver.LookupSRV(ctx, "", "", name)
	for _, record := range must(records, problem) {
		fmt.Println(record.Target, record.Port)
	}
}

func get(url string) {
	printAnswer(http.DefaultClient, must(http.NewRequest("GET", url, nil)))
}

// askAPI finds the API server and proves who it is as in-cluster clients do: by its service's name, with the token and
// the authority that the kubelet has mounted.
func askAPI(path string) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(account + "ca.crt")))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	request := must(http.NewRequest("GET", "https://kubernetes.default.svc"+path, nil))
	request.Header.Set("Authorization", "Bearer "+string(must(os.ReadFile(account+"token"))))
	printAnswer(client, request)
}

func printAnswer(client *http.Client, request *http.Request) {
	client.Timeout = patience
	answer := must(client.Do(request))
	defer answer.Body.Close()
	must(io.Copy(os.Stdout, answer.Body))
	if answer.StatusCode != http.StatusOK {
		log.Fatal(answer.Status)
	}
}

// review denies whatever it is asked about, over TLS with /tls/tls.crt and /tls/tls.key, the files of a Secret.
func review(port string) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			APIVersion, Kind string
			Request          struct{ UID, Name string }
		}
		must(0, json.NewDecoder(r.Body).Decode(&asked))
		message := fmt.Sprintf("a pod denies %s", asked.Request.Name)
		json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": asked.APIVersion, "kind": asked.Kind,
			"response": map[string]any{
				"uid": asked.Request.UID, "allowed": false, "status": map[string]any{"message": message},
			},
		})
	})
	go func() { must(0, http.ListenAndServeTLS(":"+port, "/tls/tls.crt", "/tls/tls.key", handler)) }()
	pause()
}
