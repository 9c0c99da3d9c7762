package app

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/certs"
	"github.com/headgate/headgate/cmd/internal/front/resp"
	"github.com/headgate/headgate/cmd/internal/heap"
	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/internal/config"
)

// respListener is the listener of the Redis protocol.
type respListener struct {
	instance *Instance
	settings config.ServerRESP
	gate     *access.Gate
	files    *certs.Server    // Nil without TLS.
	server   *resp.Server     // Nil without rules.
	socket   *listen.Listener // Nil when the listener is off or not open yet.
}

func newRESPListener(i *Instance, gate *access.Gate) (*respListener, error) {
	r := &respListener{instance: i, settings: i.options.Config.Server.RESP, gate: gate}
	files, err := i.listenerCertificates(r.settings.TLS, "server.resp.tls", partRESPCerts)
	if err != nil || i.rules == nil {
		return r, err
	}
	r.files = files
	described := resp.Config{
		Guard: i.rules.guard, Gate: gate, Trusts: i.trusts, Idle: r.settings.IdleTimeout, Version: i.options.Version, Log: i.options.Log,
	}
	if files != nil {
		described.TLS = files.Config()
	}
	r.server = resp.New(described)
	return r, nil
}

// open opens the socket.
func (r *respListener) open(ctx context.Context) error {
	if r.settings.Address == "" {
		return nil
	}
	socket, err := listen.Open(ctx, listen.Config{
		Address: r.settings.Address, Inherited: &r.instance.inherited, WriteTimeout: resp.WriteTimeout,
		MaxConnections: r.settings.MaxConnections, PerAddress: r.settings.MaxConnectionsPerAddress, Exempt: r.instance.trusts,
		Admit: r.gate.Connect,
	})
	if err != nil {
		return listenError("server.resp", err)
	}
	r.socket = socket
	return nil
}

// costs adds what each connection takes.
func (r *respListener) costs(to *heap.Costs) {
	if r.server != nil {
		r.server.Costs(to)
	}
}

// serve serves l, which is on the socket.
func (r *respListener) serve(l net.Listener) error {
	if err := r.server.Serve(l); err != nil {
		return errors.Join(fmt.Errorf("app: serving on %s", r.socket.Addr()), err)
	}
	return nil
}

// drain refuses connections and answers the commands in progress.
func (r *respListener) drain(ctx context.Context) error {
	if r.socket == nil {
		return nil
	}
	_ = r.socket.Close()
	return r.server.Drain(ctx)
}

func (r *respListener) address() string {
	if r.socket == nil {
		return ""
	}
	return r.socket.Addr().String()
}
