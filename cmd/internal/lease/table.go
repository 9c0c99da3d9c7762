package lease

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/internal/config/field"
)

// Write prints the resources, or one resource with its holders, for headgate ctl leases.
func Write(out io.Writer, l *admin.Leases) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	switch {
	case l.Parent != "":
		terminal.Rowf(w, "below %s\n\n", l.Parent)
	case l.Child:
		terminal.Rowf(w, "no stream to the parent is open\n\n")
	default:
		terminal.Rowf(w, "root\n\n")
	}
	switch {
	case l.Group == "":
	case l.Mine:
		terminal.Rowf(w, "group %q: this server is the master, %q\n\n", l.Group, l.Master)
	case l.Master != "":
		terminal.Rowf(w, "group %q: the master is %q, which has the leases\n\n", l.Group, l.Master)
	default:
		terminal.Rowf(w, "group %q: no master is known\n\n", l.Group)
	}
	writeLimitsOf(w, l.Limits)
	terminal.Rowf(w, "RESOURCE\tUNIT\tCAPACITY\tWANTS\tHAS\tLEDGER\tUNKNOWN\tCLAIMS\tENDS IN\n")
	for i := range l.Resources {
		r := &l.Resources[i]
		terminal.Rowf(w, "%q\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", r.Name, r.Unit, amount(r.Capacity), amount(r.Wants), amount(r.Has),
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
	terminal.Rowf(w, "capacities from headgate ctl limit: %d\n", l.InForce)
	if l.Fault != "" {
		terminal.Rowf(w, "the limits of headgate ctl limit cannot be read, the last ones stay: %s\n", terminal.Printable(l.Fault))
	}
	for _, provider := range slices.Sorted(maps.Keys(l.Refused)) {
		terminal.Rowf(w, "limit of %s refused: %s\n", terminal.Printable(provider), terminal.Printable(l.Refused[provider]))
	}
	terminal.Rowf(w, "\n")
}

// writeServers prints the servers below, one level deep: each knows its own holders.
func writeServers(w io.Writer, r *admin.LeasedResource) {
	for i := range r.Servers {
		h := &r.Servers[i]
		terminal.Rowf(w, "  server %s %q\t\t\t%s\t%s\t%s\t\t%d\t%s\n", h.Caller, h.Holder, amount(h.Wants),
			amount(h.Has), amount(h.Ledger), h.Below,
			endOf(h.EndSeconds, true))
	}
	if r.MoreServers > 0 {
		terminal.Rowf(w, "  and %s\t\t\t\t\t\t\t\t-\n", field.Counted(r.MoreServers, "more server"))
	}
}

func writeHolders(w io.Writer, r *admin.LeasedResource) {
	terminal.Rowf(w, "\nHOLDER\tCALLER\tBELOW\tWANTS\tHAS\tLEDGER\tENDS IN\n")
	for i := range r.Holders {
		h := &r.Holders[i]
		terminal.Rowf(w, "%q\t%s\t%d\t%s\t%s\t%s\t%s\n", h.Holder, h.Caller, h.Below, amount(h.Wants), amount(h.Has), amount(h.Ledger),
			endOf(h.EndSeconds, true))
	}
	if more := r.Claims - len(r.Holders); more > 0 {
		terminal.Rowf(w, "\nThe list is incomplete: %d smaller claims are not listed.\n", more)
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
