package app

import "errors"

// makeParts makes the list of parts, and finds all that are at fault. Start and Probe share it.
// Those that a part uses stand before it. The proxy stands last: it is drained first, and
// the admin listener answers to the end of its drain.
func (i *Instance) makeParts() error {
	o := &i.options
	deciding, err := newRules(o)
	if err == nil {
		i.rules, i.parts = deciding, append(i.parts, deciding)
	}
	if o.Level != nil {
		i.parts = append(i.parts, &logLevel{level: o.Level})
	}
	access, accessFault := newAccessLog(o)
	if access != nil {
		i.parts = append(i.parts, access)
	}
	i.parts = append(i.parts, newAdmin(i))
	certificates, filesFault := i.openCertificates(o.Config)
	if o.Config.Proxy.Upstream != nil && deciding != nil {
		var front *proxyPart
		if front, err = newProxyPart(i, access, certificates); err == nil {
			i.parts = append(i.parts, front)
		}
	}
	return errors.Join(err, accessFault, filesFault)
}
