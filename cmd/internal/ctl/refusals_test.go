package ctl

import (
	"reflect"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// TestOrderLike makes a request of all refusals of one request, and says when a key does not tell it.
func TestOrderLike(t *testing.T) {
	t.Parallel()
	refused := func(key string) admin.Refusal {
		return admin.Refusal{RequestID: "1", Method: "GET", Path: "/v1/search", Host: "example.com", Key: key}
	}
	order, known := orderLike([]admin.Refusal{
		refused("ip=2001:db8::1"), refused(`header:X-Client-Id="o'b \"x\" y" cookie:s="7"`), {RequestID: "2", Key: `header:X-Client-Id="other"`},
	})
	want := &admin.ExplainOrder{
		Method: "GET", Path: "/v1/search", Host: "example.com", Address: "2001:db8::1",
		Headers: admin.ExplainHeaders{"X-Client-Id": {`o'b "x" y`}, "Cookie": {"s=7"}},
	}
	if !known || !reflect.DeepEqual(order, want) {
		t.Errorf("got %+v, %v, want %+v", order, known, want)
	}
	for _, key := range []string{
		"", "header:X-Client-Id=b61ee95693108f94abd3cefde6f078f9", "ip=2001:db8::/64", `claim:sub="a"`, "header:X-Client-Id=(missing)",
	} {
		if _, known := orderLike([]admin.Refusal{refused(key)}); known {
			t.Errorf("the key %q is taken for the whole request", key)
		}
	}
	cut := refused("ip=192.0.2.1")
	cut.Path = "/long..."
	if _, known := orderLike([]admin.Refusal{cut}); known {
		t.Error("a path that was cut is taken for the whole path")
	}
}
