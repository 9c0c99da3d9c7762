//go:build !unix

package client

import "errors"

// raw is the descriptor of a connection. Only Unix has a use for it: elsewhere a
// connection cannot be checked, and is not used again.
type raw struct{}

func (*raw) use(any) {}

func (*raw) known() bool { return false }

func (*raw) quiet() bool { return false }

func (*raw) begin(_, _ []byte, _ bool) {}

func (*raw) exchange() (int, error) { return 0, errors.ErrUnsupported }

func (*raw) unsent() []byte { return nil }
