package acceptance

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// modes: a mode that is set through one instance is in force in both, with its end, and the source has the records. --here changes one.
func (o *office) modes(t *testing.T) {
	o.t = t
	both := []*instance{o.first, o.second}
	const client = "of-modes"
	o.decide(o.first, client, 3)
	passes := func(at *instance) bool {
		passed, _ := o.decide(at, client, 1)
		return passed == 1
	}
	read := func(at *instance, args ...string) string {
		t.Helper()
		status, stdout, stderr := call(t, append([]string{"ctl", "--admin", at.Admin, "--token-file", o.reader}, args...)...)
		if status != 0 {
			t.Fatalf("ctl %v: %s", args, stderr)
		}
		return stdout
	}
	set := func(at *instance) (modes []admin.ModeOverride) {
		t.Helper()
		var all admin.Modes
		if err := json.Unmarshal([]byte(read(at, "--json", "mode")), &all); err != nil {
			t.Fatal(err)
		}
		return all.Modes
	}
	want := func(what string, first, second bool) {
		t.Helper()
		eventually(t, what, func() bool { return passes(o.first) == first && passes(o.second) == second })
	}
	want("a refusal", false, false)
	o.must(o.first, "mode", "shadow", "--for", "1h", "--reason", "night")
	want("shadow in both instances", true, true)
	for _, at := range both {
		if modes := set(at); len(modes) != 1 || modes[0].Mode != "shadow" || !modes[0].Everywhere || modes[0].By != "alice" || modes[0].Until == nil {
			t.Errorf("the modes are %+v", modes)
		}
		if status := read(at, "status"); !strings.Contains(status, ", in all instances") {
			t.Errorf("the status has no mode:\n%s", status)
		}
	}
	o.must(o.second, "mode", "enforce", "api")
	want("one rule enforced in both", false, false)
	if records := o.must(o.first, "audit", "modes/current"); !strings.Contains(records, "mode modes/current by alice") ||
		!strings.Contains(records, "night") || strings.Count(records, "modes/current") != 2 {
		t.Errorf("the records are\n%s", records)
	}
	o.must(o.second, "mode", "shadow", "--here")
	want("shadow in one instance", false, true)
	if modes := set(o.second); len(modes) != 1 || modes[0].Everywhere {
		t.Errorf("the modes of the second instance are %+v", modes)
	}
	if out := o.must(o.second, "mode", "file"); !strings.Contains(out, "headgate ctl mode file --here ends them") {
		t.Errorf("the mode of the instance stays without a word:\n%s", out)
	}
	o.must(o.second, "mode", "file", "--here")
	want("the end of the mode in one instance", false, false)
	o.must(o.second, "mode", "shadow", "--for", "2s")
	want("shadow for a time", true, true)
	want("its end in both instances", false, false)
	for _, at := range both {
		eventually(t, "no mode", func() bool { return len(set(at)) == 0 })
	}
	o.must(o.first, "mode", "shadow", "api")
	want("shadow of a rule", true, true)
	o.must(o.second, "mode", "file")
	want("the modes of the file", false, false)
	if status, _, stderr := o.ctl(o.first, "mode", "shadow", "apii"); status == 0 || !strings.Contains(stderr, "did you mean api?") {
		t.Errorf("a name that no rule has: status %d, %s", status, stderr)
	}
	for _, at := range both {
		if !slices.ContainsFunc(strings.Split(at.text(), "\n"), func(line string) bool { return strings.Contains(line, "changes of the run time in the source") }) {
			t.Errorf("the log of an instance does not have the change:\n%s", at.text())
		}
	}
}
