package refusal_test

import (
	"fmt"

	"github.com/headgate/headgate/guard/refusal"
)

func ExampleNew() {
	t, err := refusal.New(refusal.Response{
		ContentType: "application/json",
		Body:        `{"code": "QUOTA", "wait": {retry_after}, "client": "{key}"}`,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The middleware fills the Values of a refusal.
	fmt.Println(string(t.AppendBody(nil, &refusal.Values{RetryAfter: 60, Key: []byte(`ip="::1"`)})))
	// Output:
	// {"code": "QUOTA", "wait": 60, "client": "ip=\u0022::1\u0022"}
}
