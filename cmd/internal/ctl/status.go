package ctl

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/config/field"
)

// writeStatus prints a status as tables.
func writeStatus(out io.Writer, s *admin.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	up := time.Duration(s.UptimeSeconds) * time.Second
	rowf(w, "headgate %s (%s), %s for %s\n", s.Version, s.Commit, s.State, up)
	if s.Listen.Proxy != "" {
		rowf(w, "%s -> %s\n", s.Listen.Proxy, s.Upstream)
	}
	for _, l := range [...]struct{ name, at string }{{"gRPC", s.Listen.GRPC}, {"HTTP", s.Listen.HTTP}, {"RESP", s.Listen.RESP}} {
		if l.at != "" {
			rowf(w, "%s on %s\n", l.name, l.at)
		}
	}
	writeReload(w, &s.Reload)
	rowf(w, "\n")
	writeRequests(w, &s.Requests)
	writePaths(w, s.Requests.ByPath)
	rowf(w, "\nRULE\tMODE\tALGORITHM\tLIMITS\tALLOWED\tWAITED\tREFUSED\tREASONS\n")
	for i := range s.Rules {
		r := &s.Rules[i]
		rowf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", r.Name, r.Mode, cmp.Or(r.Algorithm, "-"), strings.Join(r.Limits, ", "),
			r.Allowed, r.Waited, r.Refused, listCounts(r.Reasons))
	}
	writeDomains(w, s.Domains)
	writeSource(w, s.Source)
	writeFairShare(w, s.FairShare)
	if s.Throttle != nil {
		rowf(w, "\n")
		writeThrottle(w, s.Throttle)
	}
	writeMetering(w, s.Metering)
	writeReceivers(w, s.Receivers)
	writeStore(w, &s.Store)
	return w.Flush()
}

// writeDomains prints the trees of a decision server, if there are any.
func writeDomains(w io.Writer, all []admin.DomainStatus) {
	if len(all) == 0 {
		return
	}
	rowf(w, "\nDOMAIN\tLIMITS\tFALLBACK\n")
	for _, d := range all {
		rowf(w, "%s\t%d\t%s\n", printable(d.Name), d.Limits, d.Fallback)
	}
}

// writeReceivers prints the receivers of statsd lines, if there are any.
func writeReceivers(w io.Writer, all []admin.ReceiverStatus) {
	if len(all) == 0 {
		return
	}
	rowf(w, "\nSTATSD\tNETWORK\tDROPPED LINES\tERROR\n")
	for _, r := range all {
		rowf(w, "%s\t%s\t%d\t%s\n", printable(r.Address), r.Network, r.DroppedLines, cmp.Or(printable(r.Error), "-"))
	}
}

func writeRequests(w io.Writer, r *admin.RequestStatus) {
	var head, counts []string
	for _, class := range slices.Sorted(maps.Keys(r.ByCode)) {
		head = append(head, strings.ToUpper(class))
		counts = append(counts, fmt.Sprint(r.ByCode[class]))
	}
	rowf(w, "REQUESTS\tIN FLIGHT\tWAITING\tNO RULE\t%s\tUPSTREAM ERRORS\n", strings.Join(head, "\t"))
	rowf(w, "\t%d\t%d\t%d\t%s\t%s\n", r.InFlight, r.Waiting, r.NoRule, strings.Join(counts, "\t"), listCounts(r.UpstreamErrors))
}

// writePaths prints which part of the served requests took the fast path, and how many did not
// for each reason. It prints nothing before the first request.
func writePaths(w io.Writer, byPath map[string]uint64) {
	fast := report.PathFast.String()
	others, all := maps.Clone(byPath), uint64(0)
	delete(others, fast)
	for _, n := range byPath {
		all += n
	}
	if all == 0 {
		return
	}
	// The percentage is rounded down: it is 100 only if no request took another path.
	percent := math.Floor(float64(byPath[fast])/float64(all)*1000) / 10
	rowf(w, "fast path  %.1f %% of %s", percent, field.Counted(all, "request"))
	if byPath[fast] < all {
		rowf(w, "; others: %s", listCounts(others))
	}
	rowf(w, "\n")
}

// writeFairShare prints the summary of fair share if it is on. ctl shares prints the clients.
func writeFairShare(w io.Writer, s *admin.FairShareStatus) {
	if s == nil {
		return
	}
	rowf(w, "\nFAIR SHARE\tCAPACITY\tCYCLE\tCLIENTS\tLAST CYCLE\tALLOWED\tREFUSED\tREASONS\n")
	rowf(w, "%s\t%d\t%s\t%d\t%d of %d\t%d\t%d\t%s\n", s.Mode, s.Capacity, cycleOf(s.CycleSeconds), s.Clients,
		s.LastAdmitted, s.LastCapacity, s.Allowed, s.Refused, listCounts(s.Reasons))
}

// writeThrottle prints the state of the throttle.
func writeThrottle(w io.Writer, s *admin.ThrottleStatus) {
	most := fmt.Sprintf("%d of %d", s.InFlight, s.Concurrency)
	if s.Concurrency == 0 {
		most = fmt.Sprintf("%d, %.0f of %.0f ms of CPU time", s.InFlight, 1000*s.WorkInFlightSeconds, 1000*s.CPUInFlightSeconds)
	}
	queued := map[string]uint64{}
	for class, n := range s.Queued {
		queued[class] = uint64(max(n, 0))
	}
	rowf(w, "THROTTLE\tIN FLIGHT\tQUEUED\tTENANTS\tWAITED\tMEAN WAIT\tREFUSED\n")
	rowf(w, "%s\t%s\t%s\t%d\t%d\t%.0f ms\t%s\n", s.Mode, most, listCounts(queued), s.Tenants, s.Waited,
		1000*s.WaitSeconds/float64(max(s.Waited, 1)), listCounts(s.Refused))
	if s.Hung {
		rowf(w, "The service answers nothing: it gets one request at a time.\n")
	}
}

func writeStore(w io.Writer, s *admin.StoreStatus) {
	if len(s.Nodes) > 0 {
		writeNodes(w, s)
		return
	}
	rowf(w, "\nSTORE\tPLACES\tUSED\tBLOCK BYTES\tUSED\tEVICTED\tREFUSED\n")
	rowf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", s.Kind, s.Places, s.PlacesUsed, s.BlockBytes, s.BlockUsedBytes, s.Evicted, s.Refused)
}

// writeNodes prints the nodes of a shared store.
func writeNodes(w io.Writer, s *admin.StoreStatus) {
	rowf(w, "\nSTORE %s\nNODE\tSTATE\tCALLS\tDECISIONS\tFAILURES\tGIVEN UP\n", s.Kind)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		rowf(w, "%s\t%s\t%d\t%d\t%d\t%d\n", n.Address, n.State, n.Calls, n.Decisions, n.Failures, n.GivenUp)
	}
	writeClocks(w, s)
	if a := s.Ahead; a != nil {
		rowf(w, "\nUNITS AHEAD\tSPENT\tEXPIRED\tDENIED FROM MEMORY\n%d\t%d\t%d\t%d\n", a.Granted, a.Spent, a.Expired, a.DeniedFromCache)
	}
}

// clockShown is the least difference of clocks that is printed, in seconds. Calendar windows then begin at another time than
// this instance shows.
const clockShown = 1

// writeClocks prints the nodes whose clock differs from that of the instance.
func writeClocks(w io.Writer, s *admin.StoreStatus) {
	title := "\nCLOCK OF THE STORE\tAHEAD OF THIS INSTANCE\tCALENDAR LIMITS LEFT TO FALLBACKS\n"
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if math.Abs(n.ClockAheadSeconds) < clockShown {
			continue
		}
		ahead := time.Duration(n.ClockAheadSeconds * float64(time.Second)).Round(time.Second)
		rowf(w, "%s%s\t%s\t%d requests\n", title, n.Address, ahead, s.ClockErrors)
		title = ""
	}
}

// rowf writes a row of a table. It ignores the error, which Flush returns.
func rowf(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// listCounts lists the counts above 0, sorted by name.
func listCounts(counts map[string]uint64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}
