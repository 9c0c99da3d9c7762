package server

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/certs"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/front/resp"
	"github.com/headgate/headgate/cmd/internal/heap"
	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/internal/config"
)

// respListener is the listener of the Redis protocol.
type respListener struct {
	front    *Server
	settings config.ServerRESP
	gate     *access.Gate
	files    *certs.Server    // Nil without TLS.
	server   *resp.Server     // Nil without rules.
	socket   *listen.Listener // Nil when the listener is off or not open yet.
}

func newRESPListener(d *Server, gate *access.Gate) (*respListener, error) {
	r := &respListener{front: d, settings: d.o.Config.Server.RESP, gate: gate}
	files, err := d.certificates(r.settings.TLS, "server.resp.tls", partRESPCerts)
	if err != nil || d.o.Rules == nil {
		return r, err
	}
	r.files = files
	described := resp.Config{
		Guard: d.o.Rules.Guard(), Gate: gate, Trusts: d.trusts, Idle: r.settings.IdleTimeout, Version: d.o.Version, Log: d.o.Host.Log,
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
		Address: r.settings.Address, Inherited: &r.front.o.Host.Inherited, WriteTimeout: resp.WriteTimeout,
		MaxConnections: r.settings.MaxConnections, PerAddress: r.settings.MaxConnectionsPerAddress, Exempt: r.front.trusts,
		Admit: r.gate.Connect,
	})
	if err != nil {
		return component.ListenError("server.resp", err)
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
