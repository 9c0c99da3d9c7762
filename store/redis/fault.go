package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/internal/store/resp"
	"github.com/headgate/headgate/internal/store/script"
)

// couldNot wraps an error of the network or a context, with what to do next.
func couldNot(do string, err error) error { return couldNotAt(Single, do, err) }

// couldNotAt wraps an error of a server, with what to do next. kind says how the servers are arranged.
func couldNotAt(kind Kind, do string, err error) error {
	return fmt.Errorf("redis: could not %s: %w: %s", do, err, advice(kind, err))
}

// couldNotEncode wraps the error of an invalid query.
func couldNotEncode(err error) error { return fmt.Errorf("redis: %w", err) }

func advice(kind Kind, err error) string {
	r := ruleFor(kind, err)
	fault, ok := rueidis.IsRedisErr(err)
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	switch {
	case errors.Is(err, resp.ErrReply):
		return "check what listens at the server's address: another program, or a proxy that changes replies"
	case errors.As(err, &plain), errors.Is(err, errWithoutTLS):
		return "the server answers without TLS: write redis in place of rediss in the address of the store, or name its TLS port"
	case errors.As(err, &certificate):
		return "set store_tls.ca to the authority of the server's certificate, or store_tls.server_name to the name in it"
	case unsent(err):
		return "nothing was sent: check the server with redis-cli -h HOST -p PORT ping"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "the call may have been counted: check the server's SLOWLOG and LATENCY, or raise store_timeout"
	case errors.Is(err, rueidis.ErrClosing):
		return "the store is closed: stop its callers before Close"
	case r != nil:
		return r.advice
	case !ok:
		return "the call may have been counted: check the server with redis-cli -h HOST -p PORT ping, and read its log"
	}
	if text := fault.Error(); strings.HasPrefix(text, "NOPERM") || strings.Contains(text, "can't run this command") {
		return "grant the user the rights that docs/stores.md lists, on keys " + script.Prefix + "*"
	}
	if strings.HasPrefix(fault.Error(), "WRONGTYPE") {
		return "another program writes keys that begin with " + script.Prefix + " use a separate database for Headgate"
	}
	return "read the server's log"
}

// unsent reports whether a call was not sent because the connection to the node failed.
func unsent(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial"
}

// moving reports whether the server refused a call because its slot is moving to another node. The
// server has not run the call, and is healthy.
func moving(err error) bool {
	fault, ok := rueidis.IsRedisErr(err)
	return ok && fault.IsTryAgain()
}
