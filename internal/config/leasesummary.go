package config

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/config/field"
)

// LeaseBytes bounds the memory of leases: 200,000 claims of 100,000 holders, and 128 MiB of answers that clients have not read.
const LeaseBytes = 512 << 20

// writeLease writes what the server gives leases of. Writing to a strings.Builder never fails.
func (c *Config) writeLease(b *strings.Builder) {
	l := c.Lease
	if l == nil {
		return
	}
	if len(l.Servers) > 0 {
		fmt.Fprintf(b, "leases from %s", strings.Join(l.Servers, ", "))
		if l.TokenFile != "" && !l.UseTLS {
			b.WriteString(" with a token that others in the network can read: use tls")
		}
		fmt.Fprintf(b, "; without them %v", l.OnLoss)
	} else {
		fmt.Fprintf(b, "leases: the root of %s", field.Counted(len(l.Resources), "resource"))
	}
	if c.Server == nil || c.Server.GRPC.Address == "" {
		fmt.Fprintf(b, "; for at most %s of rules\n", field.Counted(l.MaxLeases, "resource"))
		return
	}
	if e := l.Election; e != nil {
		fmt.Fprintf(b, "; group %s with a master by etcd %s, ttl %s", e.Group, strings.Join(e.Etcd, ", "), field.FormatDuration(e.TTL))
		if e.PasswordFile != "" && !e.UseTLS {
			b.WriteString(", with a password that others in the network can read: use tls")
		}
	}
	if e := l.Limits; e != nil {
		fmt.Fprintf(b, "; limits of headgate ctl limit in etcd %s, below %s", strings.Join(e.Etcd, ", "), e.Prefix)
		if e.PasswordFile != "" && !e.UseTLS {
			b.WriteString(", with a password that others in the network can read: use tls")
		}
	}
	fmt.Fprintf(b, "; leases of %s, refreshed each %s; %s with settings\n", field.FormatDuration(l.Length),
		field.FormatDuration(l.Refresh), field.Counted(len(l.Holders), "holder"))
}
