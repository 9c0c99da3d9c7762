//go:build !unix

package client

import "errors"

// raw is the descriptor of a connection. Only Unix has a use for it: elsewhere an idle
// connection is an http1.Ahead.
type raw struct{}

func (*raw) use(any) {}

func (*raw) known() bool { return false }

func (*raw) quiet() bool { return false }

func (*raw) begin(_, _ []byte, _ bool) {}

func (*raw) exchange() (int, error) { return 0, errors.ErrUnsupported }

func (*raw) unsent() []byte { return nil }
