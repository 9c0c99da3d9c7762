package acceptance

import (
	"fmt"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// TestTwoVersionsOfATree: two servers on one Redis have two versions of a tree, and decide in turns. With
// each algorithm, the versions share their counts: they admit no more than the greater limit, and at least
// the smaller one.
func TestTwoVersionsOfATree(t *testing.T) {
	t.Parallel()
	redis := testserver.Start(t)
	for _, algorithm := range []string{"fixed_window", "sliding_window", "sliding_log", "token_bucket"} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			var clients []ratelimitv3.RateLimitServiceClient
			for _, limit := range []int{20, 30} {
				i := launchServer(t, file(t, fmt.Sprintf(`version: 1
store: redis://%s
store_timeout: 10s
rules: []
server: {grpc: "127.0.0.1:0", http: "127.0.0.1:0"}
domains:
  shop-%s:
    descriptors:
    - {key: user, algorithm: %s, limits: %d/1d}
`+adminAnywhere, redis.Addr, algorithm, algorithm, limit)))
				clients = append(clients, rateLimitClient(t, i.GRPC))
			}
			one := &ratelimitv3.RateLimitRequest{Domain: "shop-" + algorithm, Descriptors: []*commonv3.RateLimitDescriptor{
				{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "user", Value: "u"}}},
			}}
			admitted := 0
			for n := range 200 {
				answer, err := clients[n%2].ShouldRateLimit(t.Context(), one)
				if err != nil {
					t.Fatal(err)
				}
				if answer.GetOverallCode() == ratelimitv3.RateLimitResponse_OK {
					admitted++
				}
			}
			if admitted < 20 || admitted > 30 {
				t.Errorf("%d requests of 200 are admitted, want 20 to 30", admitted)
			}
		})
	}
}
