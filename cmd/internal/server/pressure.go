package server

import (
	"net"

	"github.com/headgate/headgate/cmd/internal/heap"
	"github.com/headgate/headgate/internal/config"
)

// watchMemory starts to close connections of all listeners near the bound of memory.
func (d *Server) watchMemory() {
	b := d.o.Memory.Now()
	d.memory.Store(heap.NewPressure(heap.PressureConfig{
		Most: b.Most, Fixed: b.Fixed, Least: b.Least, Settle: true,
		Closed: &d.closedForMemory, Log: d.o.Host.Log,
		Advice: "raise server.max_traffic_memory, or lower max_connections of the listeners of server",
		Costs: func(to *heap.Costs) {
			d.grpc.Costs(to)
			d.resp.costs(to)
			d.http.Costs(to)
		},
	}))
}

// rebound takes the local cache of a reload over into the bounds of memory.
func (d *Server) rebound(next *config.Config) {
	now := d.o.Memory.Reloaded(next)
	if p := d.memory.Load(); p != nil {
		p.Rebound(now)
	}
}

// pressed makes a listener wait for memory before it accepts a connection.
func (d *Server) pressed(l net.Listener) net.Listener { return &pressedListener{l, d} }

type pressedListener struct {
	net.Listener

	server *Server
}

// Accept implements net.Listener.
func (l *pressedListener) Accept() (net.Conn, error) {
	if p := l.server.memory.Load(); p != nil {
		p.Await()
	}
	return l.Listener.Accept() //nolint:wrapcheck // because the servers compare the error.
}
