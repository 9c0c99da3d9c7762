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
	"github.com/headgate/headgate/internal/testkit/race"
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
	if race.On { // The race detector takes memory of its own.
		return
	}
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

// TestChangeOfACustomerIsSmall: a change of one customer of 20,000 with limits of their own allocates little. Garbage would
// delay decisions: the collector reads all customers.
func TestChangeOfACustomerIsSmall(t *testing.T) {
	const customers, changes, most = 20_000, 50, 100_000
	all := make([]guard.Customer, customers)
	for i := range all {
		n := int64(1000 + i)
		all[i] = guard.Customer{Name: fmt.Sprintf("customer-%d", i), Quotas: calls(upTo(n, 2*n))}
	}
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	config := guard.Config{Store: store, Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{metering(1, 2)}, all...)}
	g, err := guard.New(config)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range int64(changes) {
		one := guard.Customer{Name: all[777*i%customers].Name, Quotas: calls(upTo(100_000+i, 200_000))}
		if config.Quotas, err = config.Quotas.With(guard.QuotaChange{Customers: []guard.Customer{one}}); err != nil {
			t.Fatal(err)
		}
		if err := g.Reload(config); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / changes; got > most {
		t.Errorf("a change allocates %d bytes, want at most %d", got, most)
	} else {
		t.Logf("a change allocates %d bytes", got)
	}
}
