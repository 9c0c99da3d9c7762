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
	"github.com/headgate/headgate/cmd/internal/console/keylimit"
	"github.com/headgate/headgate/cmd/internal/console/trial"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/cmd/internal/envoy"
	"github.com/headgate/headgate/cmd/internal/fairshare"
	"github.com/headgate/headgate/cmd/internal/mode"
	"github.com/headgate/headgate/cmd/internal/quota"
	"github.com/headgate/headgate/cmd/internal/source"
	"github.com/headgate/headgate/cmd/internal/throttle"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/config/field"
)

// writeStatus prints a status as tables.
func writeStatus(out io.Writer, s *admin.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	up := time.Duration(s.UptimeSeconds) * time.Second
	terminal.Rowf(w, "headgate %s (%s), %s for %s\n", s.Version, s.Commit, s.State, up)
	if s.Listen.Proxy != "" {
		terminal.Rowf(w, "%s -> %s\n", s.Listen.Proxy, s.Upstream)
	}
	for _, l := range [...]struct{ name, at string }{{"gRPC", s.Listen.GRPC}, {"HTTP", s.Listen.HTTP}, {"RESP", s.Listen.RESP}} {
		if l.at != "" {
			terminal.Rowf(w, "%s on %s\n", l.name, l.at)
		}
	}
	writeReload(w, &s.Reload)
	terminal.Rowf(w, "\n")
	writeRequests(w, &s.Requests)
	writePaths(w, s.Requests.ByPath)
	writeAnswers(w, &s.Requests.Answers)
	terminal.Rowf(w, "\nRULE\tMODE\tALGORITHM\tLIMITS\tALLOWED\tWAITED\tREFUSED\tREASONS\n")
	for i := range s.Rules {
		r := &s.Rules[i]
		terminal.Rowf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", r.Name, modeOf(r), cmp.Or(r.Algorithm, "-"), strings.Join(r.Limits, ", "),
			r.Allowed, r.Waited, r.Refused, terminal.ListCounts(r.Reasons))
	}
	for i := range s.Rules {
		if ended := s.Rules[i].Ended; len(ended) > 0 {
			terminal.Rowf(w, "\noverrides of %s have ended: %s\n", s.Rules[i].Name, strings.Join(ended, ", "))
		}
	}
	mode.Write(w, s.Modes)
	trial.Write(w, s.Trials)
	keylimit.Write(w, s)
	envoy.WriteDomains(w, s.Domains)
	source.Write(w, s.Source)
	writeFairShare(w, s.FairShare)
	if s.Throttle != nil {
		terminal.Rowf(w, "\n")
		throttle.Write(w, s.Throttle)
	}
	quota.WriteMetering(w, s.Metering)
	envoy.WriteReceivers(w, s.Receivers)
	writeStore(w, &s.Store)
	return w.Flush()
}

// modeOf gives the mode of a rule. A trial is in shadow.
func modeOf(r *admin.RuleStatus) string {
	if r.TrialOf != "" {
		return "trial"
	}
	return r.Mode
}

func writeRequests(w io.Writer, r *admin.RequestStatus) {
	var head, counts []string
	for _, class := range slices.Sorted(maps.Keys(r.ByCode)) {
		head = append(head, strings.ToUpper(class))
		counts = append(counts, fmt.Sprint(r.ByCode[class]))
	}
	terminal.Rowf(w, "REQUESTS\tIN FLIGHT\tWAITING\tNO RULE\t%s\tUPSTREAM ERRORS\n", strings.Join(head, "\t"))
	terminal.Rowf(w, "\t%d\t%d\t%d\t%s\t%s\n", r.InFlight, r.Waiting, r.NoRule, strings.Join(counts, "\t"),
		terminal.ListCounts(r.UpstreamErrors))
}

// writeAnswers prints the answers of Headgate and of the service. It prints nothing before the first one, as of headgate server.
func writeAnswers(w io.Writer, a *admin.AnswerStatus) {
	all := uint64(0)
	var head, own, service []string
	for _, class := range slices.Sorted(maps.Keys(a.Service)) {
		all += a.Headgate[class] + a.Service[class]
		head, service = append(head, strings.ToUpper(class)), append(service, fmt.Sprint(a.Service[class]))
		if n, found := a.Headgate[class]; found {
			own = append(own, fmt.Sprint(n))
		} else {
			own = append(own, "-")
		}
	}
	if all > 0 {
		terminal.Rowf(w, "\nANSWERS OF\t%s\n", strings.Join(head, "\t"))
		terminal.Rowf(w, "headgate\t%s\nservice\t%s\n", strings.Join(own, "\t"), strings.Join(service, "\t"))
	}
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
	terminal.Rowf(w, "fast path  %.1f %% of %s", percent, field.Counted(all, "request"))
	if byPath[fast] < all {
		terminal.Rowf(w, "; others: %s", terminal.ListCounts(others))
	}
	terminal.Rowf(w, "\n")
}

// writeFairShare prints the summary of fair share if it is on. ctl shares prints the clients.
func writeFairShare(w io.Writer, s *admin.FairShareStatus) {
	if s == nil {
		return
	}
	terminal.Rowf(w, "\nFAIR SHARE\tCAPACITY\tCYCLE\tCLIENTS\tLAST CYCLE\tALLOWED\tREFUSED\tREASONS\n")
	terminal.Rowf(w, "%s\t%d\t%s\t%d\t%d of %d\t%d\t%d\t%s\n", s.Mode, s.Capacity, fairshare.CycleOf(s.CycleSeconds), s.Clients,
		s.LastAdmitted, s.LastCapacity, s.Allowed, s.Refused, terminal.ListCounts(s.Reasons))
}

func writeStore(w io.Writer, s *admin.StoreStatus) {
	if len(s.Nodes) > 0 {
		writeNodes(w, s)
		return
	}
	terminal.Rowf(w, "\nSTORE\tPLACES\tUSED\tBLOCK BYTES\tUSED\tEVICTED\tREFUSED\n")
	terminal.Rowf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", s.Kind, s.Places, s.PlacesUsed, s.BlockBytes, s.BlockUsedBytes, s.Evicted, s.Refused)
}

// writeNodes prints the nodes of a shared store.
func writeNodes(w io.Writer, s *admin.StoreStatus) {
	terminal.Rowf(w, "\nSTORE %s\nNODE\tSTATE\tCALLS\tDECISIONS\tFAILURES\tGIVEN UP\n", s.Kind)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		terminal.Rowf(w, "%s\t%s\t%d\t%d\t%d\t%d\n", n.Address, n.State, n.Calls, n.Decisions, n.Failures, n.GivenUp)
	}
	writeFailures(w, s.Nodes)
	writeClocks(w, s)
	if a := s.Ahead; a != nil {
		terminal.Rowf(w, "\nUNITS AHEAD\tSPENT\tEXPIRED\tDENIED FROM MEMORY\n%d\t%d\t%d\t%d\n", a.Granted, a.Spent,
			a.Expired, a.DeniedFromCache)
	}
}

// writeFailures prints the last failure of each node that had one.
func writeFailures(w io.Writer, nodes []admin.NodeStatus) {
	title := "\nNODE\tLAST FAILURE\tERROR\n"
	for i := range nodes {
		if at := nodes[i].LastErrorAt; at != nil {
			text := terminal.Printable(nodes[i].LastError)
			terminal.Rowf(w, "%s%s\t%s\t%s\n", title, nodes[i].Address, at.Local().Format(time.DateTime), text)
			title = ""
		}
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
		terminal.Rowf(w, "%s%s\t%s\t%d requests\n", title, n.Address, ahead, s.ClockErrors)
		title = ""
	}
}
