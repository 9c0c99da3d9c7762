// Command grpc is a gRPC service that applies the rules of headgate.yaml. With the
// argument call it is a client of the service.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/middleware/grpclimit"
)

const address = "127.0.0.1:8081"

func main() {
	if len(os.Args) > 1 && os.Args[1] == "call" {
		answers, err := call(address, "north", 3)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(strings.Join(answers, "\n"))
		return
	}
	if err := serve(); err != nil {
		log.Fatal(err)
	}
}

func serve() error {
	server, err := guarded("headgate.yaml")
	if err != nil {
		return err
	}
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	log.Println("serving on " + address)
	return server.Serve(ln)
}

// guarded returns a server that applies the rules of a file to its calls.
func guarded(file string) (*grpc.Server, error) {
	c, err := config.Load(file)
	if err != nil {
		return nil, err
	}
	g, err := open.Guard(c)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(grpclimit.Unary(g, grpclimit.Options{})),
		grpc.ChainStreamInterceptor(grpclimit.Stream(g, grpclimit.Options{})),
	)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer()) // Register your own service here.
	return server, nil
}
