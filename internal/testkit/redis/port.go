package redis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are below the range that systems use for outgoing connections (from 32768 on
// Linux, from 49152 elsewhere). No client can take the port of a server that is down. A
// cluster node also listens on its port + busOffset.
const (
	lowestPort = 10_000
	busOffset  = 10_000
	ports      = 32_768 - busOffset - lowestPort
)

// freePort returns a free port whose bus port is free too. Another program may take them before
// the server does, so that the caller must retry.
func freePort() (int, error) {
	for range 1000 {
		port := lowestPort + rand.IntN(ports)
		if free(port) && free(port+busOffset) {
			return port, nil
		}
	}
	return 0, errors.New("no free port on 127.0.0.1: stop programs that listen on many ports")
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

// portOf returns the port of an address.
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
