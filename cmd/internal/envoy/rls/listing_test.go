package rls_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/envoy/rls"
	"github.com/headgate/headgate/guard"
)

func TestListing(t *testing.T) {
	got := rls.Listing([]guard.Domain{
		{Name: "b", Descriptors: []guard.Descriptor{node("k", "v\nw", inShadow(counted(5, time.Minute)), node("l", "", inQuota(counted(1, day))))}},
		{Name: "a", Descriptors: []guard.Descriptor{node("k", "", nil), node("u", "", &guard.Leaf{Unlimited: true}), node("p", "", counted(3, 90*time.Second))}},
	})
	const want = `a.p: unit=UNKNOWN requests_per_unit=3, shadow_mode: false, quota_mode: false
a.u: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false
b.k_v\nw.l: unit=DAY requests_per_unit=1, shadow_mode: false, quota_mode: true
b.k_v\nw: unit=MINUTE requests_per_unit=5, shadow_mode: true, quota_mode: false
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
