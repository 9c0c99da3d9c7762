package quota

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
)

func TestWriteMetering(t *testing.T) {
	var b strings.Builder
	WriteMetering(&b, nil)
	WriteMetering(&b, &admin.MeteringStatus{Instance: "eu-1", Faults: 2, Outputs: []admin.MeteringOutput{{
		Name: "events", Delivered: 5, Pending: 7, OldestSeconds: 90.4, Dropped: 1, SetAside: 3, Failures: 4, Error: "status\x1b 500",
	}}})
	got := strings.ReplaceAll(b.String(), "\t", " ")
	want := "\nMETERING OUTPUT DELIVERED PENDING OLDEST DROPPED SET ASIDE FAILURES ERROR\n" +
		"eu-1 events 5 7 1m30s 1 3 4 " + terminal.Printable("status\x1b 500") + "\n" +
		"journal faults 2, changes lost 0, changes under others 0\n"
	if got != want || strings.Contains(got, "\x1b") {
		t.Errorf("got %q, want %q", got, want)
	}
}
