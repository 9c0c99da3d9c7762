package app

import (
	"errors"
	"net/http"

	"google.golang.org/grpc"

	"github.com/headgate/headgate/cmd/internal/front/httpdecide"
	"github.com/headgate/headgate/cmd/internal/front/openapi"
	"github.com/headgate/headgate/internal/config"
)

// makeComponents creates the list of components and reports all faults at once. Start and
// Probe call it. A component stands behind the components that it uses. The proxy or the decision
// service is last, so that it is drained first, and the admin listener answers meanwhile.
func (i *Instance) makeComponents() error {
	o := &i.options
	used := newMetering(o)
	var meteringFault error
	if used != nil && o.probe {
		meteringFault = used.probe()
	}
	if used != nil {
		i.components = append(i.components, used)
	}
	held, err := newRuleLeases(o)
	if err != nil {
		return errors.Join(meteringFault, i.options.Config.Located(err))
	}
	i.held = held
	deciding, err := newRules(o, used.guardMeter(), held)
	if err == nil {
		i.rules, i.components = deciding, append(i.components, deciding)
	}
	err = errors.Join(meteringFault, err)
	if o.Level != nil {
		i.components = append(i.components, &logLevel{level: o.Level})
	}
	access, accessFault := newAccessLog(o)
	if access != nil {
		i.components = append(i.components, access)
	}
	callers, callersFault := newAccessControl(i)
	if callersFault != nil {
		return errors.Join(err, accessFault, i.options.Config.Located(callersFault), i.makeProxy(access))
	}
	i.access = callers
	i.components = append(i.components, callers, newAdmin(i))
	return errors.Join(err, accessFault, i.makeProxy(access), i.makeServer(), i.makeSource())
}

// makeSource creates the follower of the source, if there is one. It stands behind all components that it reloads.
func (i *Instance) makeSource() error {
	if i.options.Config.Source == nil || i.rules == nil {
		return nil
	}
	f, err := newSourceFollower(i)
	if err == nil {
		i.source, i.followed = f, f
		i.components = append(i.components, f)
	}
	return err
}

// makeProxy creates the proxy, unless the instance serves the section server. Without rules it
// only reports faults of the proxy's files.
func (i *Instance) makeProxy(access *accessLog) error {
	c := i.options.Config
	if i.options.Server {
		return nil
	}
	certificates, err := i.openCertificates(c)
	if c.Proxy.Upstream == nil || i.rules == nil {
		return err
	}
	front, fault := newProxyServer(i, access, certificates)
	if fault == nil {
		i.components = append(i.components, front)
	}
	return errors.Join(fault, err)
}

// makeServer creates the decision service, if the instance serves it or checks its section.
func (i *Instance) makeServer() error {
	if i.options.Config.Server == nil || !i.options.Server && !i.options.probe {
		return nil
	}
	if i.options.Outlets == nil {
		outlets, err := configured(i.options.Config)
		if err != nil {
			return err
		}
		i.options.Outlets = outlets
	}
	front, err := newDecisionServer(i)
	err = errors.Join(err, undecidable(i.options.Config))
	if err == nil && i.rules != nil {
		i.components = append(i.components, front)
		if i.options.Outlets != nil {
			i.components = append(i.components, newOutlets(front))
		}
		if i.options.Domains != nil {
			i.components = append(i.components, newDomainFollower(i))
		}
	}
	return err
}

// grpcService registers a service on the gRPC listener of headgate server.
type grpcService func(grpc.ServiceRegistrar)

// grpcServices lists the services of the gRPC listener, beside the health service.
func (d *decisionServer) grpcServices() []grpcService {
	all := []grpcService{d.limits.Register, d.decisions.Register}
	if d.leases != nil {
		all = append(all, d.leases.service.Register)
	}
	return all
}

// httpService handles the requests of one pattern of http.ServeMux on the HTTP listener of
// headgate server.
type httpService struct {
	pattern string
	handler http.Handler // with its gate
}

// httpServices lists all that the HTTP listener serves. The document of package openapi describes it.
func (d *decisionServer) httpServices() []httpService {
	return []httpService{
		{"GET /healthcheck", http.HandlerFunc(d.healthcheck)},
		{openapi.Pattern, openapi.Handler()},
		{"/json", d.gates.http.Handler(config.ScopeDecide, d.limits)},
		{httpdecide.Pattern, guardedDecide(d.gates.http, d.decide)},
	}
}
