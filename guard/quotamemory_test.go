package guard_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
)

const (
	memoryVariable = "HEADGATE_TEST_CUSTOMER_MEMORY"
	manyCustomers  = 100_000
	manyLimits     = 10_000
	// mostForCustomer is the requirement, in bytes beside the name.
	mostForCustomer = 300
)

// TestMemoryOfCustomers measures in a process of its own, so that other tests do not disturb it.
func TestMemoryOfCustomers(t *testing.T) {
	if os.Getenv(memoryVariable) != "" {
		fmt.Println("bytes:", bytesForCustomers(t))
		return
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemoryOfCustomers$")
	command.Env = append(os.Environ(), memoryVariable+"=1")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, text, _ := strings.Cut(string(out), "bytes: ")
	text, _, _ = strings.Cut(text, "\n")
	got, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes for each customer beside its name", got)
	if got > mostForCustomer {
		t.Errorf("got %d bytes for each customer beside its name, want at most %d", got, mostForCustomer)
	}
}

// bytesForCustomers measures a guard with many customers, with its store, its Quotas and the entries of the configuration, against a guard with one.
func bytesForCustomers(t *testing.T) int64 {
	t.Helper()
	before := inUse()
	names := make([]string, manyCustomers)
	for i := range names {
		names[i] = fmt.Sprintf("customer-%d", i)
	}
	named := inUse() - before
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	config := guard.Config{Store: store, Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{metering(1, 2)})}
	g, err := guard.New(config)
	if err != nil {
		t.Fatal(err)
	}
	base := inUse()
	customers := manyEntries(names)
	config.Quotas = quotas(t, []guard.Plan{metering(1, 2)}, customers...)
	if err := g.Reload(config); err != nil {
		t.Fatal(err)
	}
	config.Quotas = nil
	used := inUse() - base
	runtime.KeepAlive(customers) // A program keeps the entries of its configuration.
	last := request("/a", names[manyCustomers-1])
	if a := decide(t, g, last); a.Results[0].Limit.Count != 1000+(manyCustomers-1)%manyLimits {
		t.Errorf("got the limit %s of the last customer, want its own", a.Results[0].Limit)
	}
	// names is in use until here, as a slice of its own: its strings are those of the Quotas.
	t.Logf("the names take %d bytes each", named/int64(len(names)))
	return used / manyCustomers
}

// manyEntries gives each customer a limit of its own. Equal limits are one list, as package config reads them.
func manyEntries(names []string) []guard.Customer {
	lists := make([][]guard.QuotaLimits, manyLimits)
	for i := range lists {
		n := int64(1000 + i)
		lists[i] = calls(upTo(n, 2*n))
	}
	customers := make([]guard.Customer, len(names))
	for i, name := range names {
		customers[i] = guard.Customer{Name: name, Quotas: lists[i%manyLimits]}
	}
	return customers
}

func inUse() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
