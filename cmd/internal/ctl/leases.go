package ctl

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config/field"
)

// Leases prints the resources of capacity leases, or one resource with its holders.
func (c *Instance) Leases(ctx context.Context, stdout io.Writer, resource string) error {
	page := "/api/v1/leases"
	if resource != "" {
		page += "?resource=" + url.QueryEscape(resource)
	}
	return show(ctx, c, page, stdout, writeLeases)
}

func writeLeases(out io.Writer, l *admin.Leases) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	switch {
	case l.Parent != "":
		rowf(w, "below %s\n\n", l.Parent)
	case l.Child:
		rowf(w, "no stream to the parent is open\n\n")
	default:
		rowf(w, "root\n\n")
	}
	switch {
	case l.Group == "":
	case l.Mine:
		rowf(w, "group %q: this server is the master, %q\n\n", l.Group, l.Master)
	case l.Master != "":
		rowf(w, "group %q: the master is %q, which has the leases\n\n", l.Group, l.Master)
	default:
		rowf(w, "group %q: no master is known\n\n", l.Group)
	}
	writeLimitsOf(w, l.Limits)
	rowf(w, "RESOURCE\tUNIT\tCAPACITY\tWANTS\tHAS\tLEDGER\tUNKNOWN\tCLAIMS\tENDS IN\n")
	for i := range l.Resources {
		r := &l.Resources[i]
		rowf(w, "%q\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", r.Name, r.Unit, amount(r.Capacity), amount(r.Wants), amount(r.Has),
			amount(r.Ledger), amount(r.Unknown), r.Claims, endOf(r.EndSeconds, l.Child))
		writeServers(w, r)
	}
	if len(l.Resources) == 1 && len(l.Resources[0].Holders) > 0 {
		writeHolders(w, &l.Resources[0])
	}
	return w.Flush()
}

// writeLimitsOf says how the limits of headgate ctl limit are read.
func writeLimitsOf(w io.Writer, l *admin.LeaseLimits) {
	if l == nil {
		return
	}
	rowf(w, "capacities from headgate ctl limit: %d\n", l.InForce)
	if l.Fault != "" {
		rowf(w, "the limits of headgate ctl limit cannot be read, the last ones stay: %s\n", printable(l.Fault))
	}
	for _, provider := range slices.Sorted(maps.Keys(l.Refused)) {
		rowf(w, "limit of %s refused: %s\n", printable(provider), printable(l.Refused[provider]))
	}
	rowf(w, "\n")
}

// writeServers prints the servers below, one level deep: each knows its own holders.
func writeServers(w io.Writer, r *admin.LeasedResource) {
	for i := range r.Servers {
		h := &r.Servers[i]
		rowf(w, "  server %s %q\t\t\t%s\t%s\t%s\t\t%d\t%s\n", h.Caller, h.Holder, amount(h.Wants), amount(h.Has), amount(h.Ledger), h.Below,
			endOf(h.EndSeconds, true))
	}
	if r.MoreServers > 0 {
		rowf(w, "  and %s\t\t\t\t\t\t\t\t-\n", field.Counted(r.MoreServers, "more server"))
	}
}

func writeHolders(w io.Writer, r *admin.LeasedResource) {
	rowf(w, "\nHOLDER\tCALLER\tBELOW\tWANTS\tHAS\tLEDGER\tENDS IN\n")
	for i := range r.Holders {
		h := &r.Holders[i]
		rowf(w, "%q\t%s\t%d\t%s\t%s\t%s\t%s\n", h.Holder, h.Caller, h.Below, amount(h.Wants), amount(h.Has), amount(h.Ledger),
			endOf(h.EndSeconds, true))
	}
	if more := r.Claims - len(r.Holders); more > 0 {
		rowf(w, "\nThe list is incomplete: %d smaller claims are not listed.\n", more)
	}
}

func amount(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// endOf writes the time until a lease ends; - for a root, which has none.
func endOf(seconds float64, has bool) string {
	if !has {
		return "-"
	}
	return fmt.Sprint(time.Duration(seconds * float64(time.Second)).Round(100 * time.Millisecond))
}
