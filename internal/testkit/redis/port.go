package redis

import (
	"fmt"
	"net"
	"strconv"
)

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
