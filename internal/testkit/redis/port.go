package redis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports come from below those that systems give to outgoing connections (32768 and
// up on Linux, 49152 elsewhere): so no client takes the port of a server that is
// down for a while. A cluster's node listens on its port + busOffset too.
const (
	lowestPort = 10_000
	busOffset  = 10_000
	ports      = 32_768 - busOffset - lowestPort
)

// freePort gives a port that nobody listens on, and nobody on busOffset above it.
// Somebody may, a moment later: so starting is tried again.
func freePort() (int, error) {
	for range 1000 {
		port := lowestPort + rand.IntN(ports)
		if free(port) && free(port+busOffset) {
			return port, nil
		}
	}
	return 0, errors.New("no port is free on 127.0.0.1: end the programs that listen on hundreds of them")
}

func free(port int) bool {
	l, err := net.Listen("tcp", loopback(port)) //nolint:noctx // it ends at once
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// portOf reads the port of an address such as loopback gives.
func portOf(addr string) (int, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65_535 {
		return 0, fmt.Errorf("%q has no port", addr)
	}
	return n, nil
}
