package server

import (
	"net/http"

	"google.golang.org/grpc"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/front/httpdecide"
	"github.com/headgate/headgate/cmd/internal/front/openapi"
	"github.com/headgate/headgate/internal/config"
)

// GRPCService registers a service on the gRPC listener of headgate server.
type GRPCService func(grpc.ServiceRegistrar)

// GRPCServices lists the services of the gRPC listener, beside the health service.
func (d *Server) GRPCServices() []GRPCService {
	all := []GRPCService{d.limits.Register, d.decisions.Register}
	if d.leases != nil {
		all = append(all, d.leases.Register)
	}
	return all
}

// HTTPService handles the requests of one pattern of http.ServeMux on the HTTP listener of
// headgate server.
type HTTPService struct {
	Pattern string
	handler http.Handler // with its gate
}

// HTTPServices lists all that the HTTP listener serves. The document of package openapi describes it.
func (d *Server) HTTPServices() []HTTPService {
	return []HTTPService{
		{"GET /healthcheck", http.HandlerFunc(d.healthcheck)},
		{openapi.Pattern, openapi.Handler()},
		{"/json", d.gates.http.Handler(config.ScopeDecide, d.limits)},
		{httpdecide.Pattern, guardedDecide(d.gates.http, d.decide)},
	}
}

// guarded registers a service whose clients the gate lets in.
func guarded(g *access.Gate, register GRPCService) func(grpc.ServiceRegistrar) {
	return func(to grpc.ServiceRegistrar) { register(g.Registrar(to, access.MethodScopes())) }
}

// guardedDecide serves POST with a token of the program in Authorization, and subrequests with one of the gateway in
// access.TokenField.
func guardedDecide(g *access.Gate, next http.Handler) http.Handler {
	posts := g.Handler(config.ScopeDecide, next)
	subrequests := g.Subrequests(config.ScopeDecide, httpdecide.Refuse, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.ServeHTTP(w, r)
			return
		}
		subrequests.ServeHTTP(w, r)
	})
}
