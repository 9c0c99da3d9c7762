package acceptance

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestMeteringOnAFullDisk: the journal is on a disk of 1 MiB that fills up. Status, metrics and log say that records wait in memory, and
// when they are written. At the end with a full disk, the log names each lost record by customer, quota and minute. The disk is a tmpfs
// of the process alone, which needs no root.
func TestMeteringOnAFullDisk(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	folder, disk := t.TempDir(), t.TempDir()
	path := file(t, fmt.Sprintf(metered, 1_000_000, 2_000_000, behind.URL, disk, "http://127.0.0.1:1/", folder)+adminAnywhere)
	i := serve(t, path, exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec",
		`mount -t tmpfs -o size=1m none "$1"; exec "$2" proxy --config "$3"`, "sh", disk, binary, path))
	inside := fmt.Sprintf("/proc/%d/root%s/", i.command.Process.Pid, disk)
	fill := func() {
		big, err := os.Create(inside + "big")
		if err == nil {
			_, err = big.Write(make([]byte, 2<<20))
			_ = big.Close()
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("filling the disk: %v", err)
		}
	}
	const customers = 200 // Their records do not fit in the last page of the file.
	use := func(name string) {
		for n := range customers {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+i.Proxy, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Customer", fmt.Sprint(name, n))
			req.Header.Set("X-Cost", "1")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
	}
	use("before")
	eventually(t, "written records", func() bool { return strings.Contains(meteringText(t, i), fmt.Sprintf(" lines %d 0 ", customers)) })
	fill()
	use("full")
	const noSpace = "no space left on device"
	waiting := func() (pending int) {
		text := meteringText(t, i)
		delivered := 0
		_, counts, _ := strings.Cut(text, " lines ")
		_, _ = fmt.Sscan(counts, &delivered, &pending)
		if pending > 0 && strings.Contains(text, noSpace) && delivered+pending == 2*customers {
			return pending
		}
		return 0
	}
	eventually(t, "PENDING and ERROR", func() bool { return waiting() > 0 })
	if _, metrics := get(t, "http://"+i.Health+"/metrics"); !strings.Contains(metrics, fmt.Sprintf("\nheadgate_metering_waiting_records %d\n", waiting())) {
		t.Errorf("the metrics do not have the %d records that wait in memory", waiting())
	}
	if !strings.Contains(i.text(), "the journal cannot be written") {
		t.Errorf("no line about the full disk: %s", i.text())
	}
	if err := os.Remove(inside + "big"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the delivery", func() bool { return strings.Contains(meteringText(t, i), fmt.Sprintf(" lines %d 0 ", 2*customers)) })
	if text := i.text(); !strings.Contains(text, "the journal is written again") || strings.Contains(meteringText(t, i), noSpace) {
		t.Errorf("no line about the space, or the status keeps its error: %s", text)
	}
	fill()
	use("brim")
	eventually(t, "ERROR", func() bool { return strings.Contains(meteringText(t, i), noSpace) })
	use("lost")
	i.stop()
	text := i.text()
	for n := range customers {
		if !strings.Contains(text, fmt.Sprintf(`"customer":"lost%d","quota":"api_calls","minute":"`, n)) {
			t.Errorf("the log does not name lost%d: %s", n, text)
			break
		}
	}
	if strings.Contains(text, `"customer":"full`) {
		t.Error("the log names a record as lost that was delivered")
	}
}

// meteringText gives the part of ctl status about metering, with one blank between words.
func meteringText(t *testing.T, i *instance) string {
	t.Helper()
	_, stdout, _ := call(t, "ctl", "status", "--admin", i.Admin)
	_, rest, _ := strings.Cut(stdout, "METERING")
	return strings.Join(strings.Fields(rest), " ")
}
