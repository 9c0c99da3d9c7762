package config

import (
	"fmt"
	"slices"

	"github.com/headgate/headgate/internal/config/field"
)

// LoadParent reads the file of a server for CheckParent. It reads no environment variable, because those of this process
// are not those of the parent. The error is of type Faults if the file is readable but invalid.
func LoadParent(path string) (*Config, error) {
	text, err := readBounded(path)
	if err != nil {
		return nil, adviseRead(err)
	}
	c, r, err := readConfig(path, text, func(string) (string, bool) { return "", false }, nil)
	if err != nil {
		return nil, err
	}
	if err := r.locate(path); err != nil {
		return nil, err
	}
	return c, nil
}

// CheckParent compares c with the configuration of a server that is in lease.servers of c. It finds what keeps c from
// its leases whatever else is configured. With files, it also finds the caller of the token in lease.token_file of c.
// Load, LoadParent or Parse have read both. The error has Faults of both files.
func (c *Config) CheckParent(parent *Config, files bool) error {
	p := leasePair{child: sideOf(c), parent: sideOf(parent)}
	if c.Lease == nil || len(c.Lease.Servers) == 0 {
		p.child.fault("lease.servers", "is missing, so this server has no parent",
			`leave out the parent, or write lease: {servers: ["eu-1.example.com:8081"]}`)
	}
	if !parent.GivesLeases() {
		p.parent.fault(leaseName, "this server gives no leases, so it is no parent",
			"name the file of a server in lease.servers of "+p.child.name())
	}
	if err := p.result(); err != nil {
		return err
	}
	if err := p.callers(files); err != nil {
		return err
	}
	p.lengths()
	p.master()
	p.rules()
	return p.result()
}

// GivesLeases reports whether the gRPC listener gives leases: without it, the section lease is for rules.
func (c *Config) GivesLeases() bool {
	return c.Lease != nil && c.Server != nil && c.Server.GRPC.Address != ""
}

// leasePair compares two servers.
type leasePair struct{ child, parent leaseSide }

// leaseSide is a configuration, and the reader for its faults.
type leaseSide struct {
	*Config

	reader *reader
}

// sideOf reads the file again. Then the reader knows the lines with secrets, which faults do not show.
func sideOf(c *Config) leaseSide {
	root, _ := c.written.source.tree() // It was read before without a fault.
	r := &reader{source: c.written.source, environment: c.written.environment, root: root, networks: c.written.networks.known()}
	r.config(defaults())
	r.faults, r.full = nil, false
	return leaseSide{c, r}
}

func (s *leaseSide) name() string { return s.reader.source.name }

// fault notes a fault at a path, or at the value around it if the file does not have the path.
func (s *leaseSide) fault(path, problem, fix string) {
	s.reader.fault(s.reader.find(path), problem, fix)
}

// has reports whether the file has a field of the section lease.
func (s *leaseSide) has(name string) bool {
	return s.reader.find(leaseName+"."+name).node != s.reader.find(leaseName).node
}

// result returns the faults of both files.
func (p *leasePair) result() error {
	var all Faults
	for _, side := range []*leaseSide{&p.child, &p.parent} {
		_ = side.reader.result()
		all = append(all, side.reader.faults...)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// lengths compares the lengths of leases. A parent whose caller lacks server: true has a longer default when it is added.
func (p *leasePair) lengths() {
	if !p.child.GivesLeases() {
		return
	}
	own, above := p.child.Lease.Length, p.parent.Lease.Length
	if !p.parent.has("length") && len(p.parent.Lease.Servers) > 0 {
		above = lengthBetween
	}
	if own < above {
		return
	}
	fix := "use a longer one in " + p.parent.name()
	if least := p.child.Lease.leastLength(); least < above {
		fix = fmt.Sprintf("use at least %s and less than %s, or a longer one in %s", field.FormatDuration(least),
			field.FormatDuration(above), p.parent.name())
	}
	p.child.fault("lease.length", fmt.Sprintf("leases of %s do not end before those of the parent, %s, which cuts them",
		field.FormatDuration(own), field.FormatDuration(above)), fix)
}

// master finds a master that the child would not follow.
func (p *leasePair) master() {
	e := p.parent.Lease.Election
	if e == nil || e.Address == "" || slices.Contains(p.child.Lease.Servers, e.Address) {
		return
	}
	p.child.fault("lease.servers", fmt.Sprintf("%s, the lease.election.address of %s, is missing, so this server gets nothing while it is "+
		"the master", quote(e.Address), p.parent.name()), "add it")
}
