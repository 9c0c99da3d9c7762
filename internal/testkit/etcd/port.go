package etcd

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
	ports      = 32_768 - lowestPort
)

// freePorts returns two free addresses of loopback. Another program may take them before the
// server does, so that the caller must retry.
func freePorts() (client, peer string, err error) {
	for range 1000 {
		port := lowestPort + rand.IntN(ports-1)
		client, peer = loopback(port), loopback(port+1)
		if free(client) && free(peer) {
			return client, peer, nil
		}
	}
	return "", "", errors.New("fewer than two free ports on 127.0.0.1: stop programs that listen on many ports")
}

func free(addr string) bool {
	l, err := net.Listen("tcp", addr) //nolint:noctx // it ends at once
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
