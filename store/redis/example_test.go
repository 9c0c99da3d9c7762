package redis_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/redis"
)

// A store opens without its server. Decisions fail until the server answers, and the caller uses
// a fallback. In this example, no server listens.
func Example() {
	store, err := redis.Open(redis.Config{Client: rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	perMinute, err := store.Prepare(headgate.Policy{
		Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 100, Per: time.Minute},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	var decisions [1]headgate.Decision
	err = store.Apply(ctx, []headgate.Op{{Key: "customer-42", Policy: perMinute, Cost: 1}}, decisions[:])
	fmt.Println("could be decided:", err == nil)
	// Output: could be decided: false
}
