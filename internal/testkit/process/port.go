package process

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are below the range that systems use for outgoing connections (from 32768 on
// Linux, from 49152 elsewhere). No client can take the port of a server that is down.
const (
	lowestPort = 10_000
	endOfPorts = 32_768
)

// FreePort returns a free port of 127.0.0.1. With an offset above 0, the port + offset is free too.
// Another program may take them before the server does, so that the caller must retry.
func FreePort(offset int) (int, error) {
	for range 1000 {
		port := lowestPort + rand.IntN(endOfPorts-lowestPort-offset)
		if free(port) && free(port+offset) {
			return port, nil
		}
	}
	return 0, errors.New("no free port on 127.0.0.1: stop programs that listen on many ports")
}

func free(port int) bool {
	l, err := net.Listen("tcp", Loopback(port)) //nolint:noctx // it ends at once
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// Loopback returns the address of a port of 127.0.0.1.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
