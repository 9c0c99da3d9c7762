// Command bare204 answers every HTTP request with 204, with the settings of headgate server's HTTP listener.
// A request with a query gets the fields of an answer of headgate server.
// A gRPC server with the health service at the other address says that it serves. The benchmark compares
// headgate server with it.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: bare204 GRPC-HOST:PORT HTTP-HOST:PORT")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "bare204:", err)
		os.Exit(1)
	}
}

func serve(healthAt, at string) error {
	var listen net.ListenConfig
	web, err := listen.Listen(context.Background(), "tcp", at)
	if err != nil {
		return err
	}
	other, err := listen.Listen(context.Background(), "tcp", healthAt)
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	server := &http.Server{
		Handler:           http.HandlerFunc(answer),
		ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	go func() { failed <- server.Serve(web) }()
	tells := grpc.NewServer()
	healthpb.RegisterHealthServer(tells, health.NewServer())
	go func() { failed <- tells.Serve(other) }()
	return errors.Join(<-failed)
}

// answer answers a request with 204.
func answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "" {
		w.Header()["Ratelimit-Policy"] = []string{`"user";q=4000000000;w=86400`}
		w.Header()["Ratelimit"] = []string{`"user";r=3999999999`}
	}
	w.WriteHeader(http.StatusNoContent)
}
