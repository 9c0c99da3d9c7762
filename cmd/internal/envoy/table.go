package envoy

import (
	"cmp"
	"io"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
)

// WriteDomains prints the trees of a decision server, if there are any.
func WriteDomains(w io.Writer, all []admin.DomainStatus) {
	if len(all) == 0 {
		return
	}
	terminal.Rowf(w, "\nDOMAIN\tLIMITS\tFALLBACK\n")
	for _, d := range all {
		terminal.Rowf(w, "%s\t%d\t%s\n", terminal.Printable(d.Name), d.Limits, d.Fallback)
	}
}

// WriteReceivers prints the receivers of statsd lines, if there are any.
func WriteReceivers(w io.Writer, all []admin.ReceiverStatus) {
	if len(all) == 0 {
		return
	}
	terminal.Rowf(w, "\nSTATSD\tNETWORK\tDROPPED LINES\tERROR\n")
	for _, r := range all {
		terminal.Rowf(w, "%s\t%s\t%d\t%s\n", terminal.Printable(r.Address), r.Network, r.DroppedLines,
			cmp.Or(terminal.Printable(r.Error), "-"))
	}
}
