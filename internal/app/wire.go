package app

import "errors"

// makeComponents creates the list of components and reports all faults at once. Start and
// Probe call it. A component stands behind the components that it uses. The proxy is last, so
// that it is drained first and the admin listener answers until the proxy has drained.
func (i *Instance) makeComponents() error {
	o := &i.options
	deciding, err := newRules(o)
	if err == nil {
		i.rules, i.components = deciding, append(i.components, deciding)
	}
	if o.Level != nil {
		i.components = append(i.components, &logLevel{level: o.Level})
	}
	access, accessFault := newAccessLog(o)
	if access != nil {
		i.components = append(i.components, access)
	}
	i.components = append(i.components, newAdmin(i))
	certificates, filesFault := i.openCertificates(o.Config)
	if o.Config.Proxy.Upstream != nil && deciding != nil {
		var front *proxyServer
		if front, err = newProxyServer(i, access, certificates); err == nil {
			i.components = append(i.components, front)
		}
	}
	return errors.Join(err, accessFault, filesFault)
}
