// Command leases measures headgate server with 50,000 holders of capacity leases beside a bare echo. Its exit status is 1 when a bar
// is missed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/leases"
)

func main() {
	echo := flag.String("echo", "", "serve the bare echo on `HOST:PORT`, and measure nothing")
	quick := flag.Bool("quick", false, "a small run, to check that the benchmark works")
	rounds := flag.Int("rounds", leases.Full().Rounds, "the number of rounds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, *echo, *quick, max(*rounds, 1))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "leases:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, echo string, quick bool, rounds int) error {
	if echo != "" {
		return leases.Serve(echo)
	}
	size := leases.Full()
	size.Rounds = rounds
	if quick {
		size = leases.Quick()
	}
	debug.SetGCPercent(800) // The program that sends must not slow the servers down.
	var all []leases.Figure
	fmt.Println("round side              cores  load reports/s answers pushes      p50      p99 KiB/holder  has/wants")
	err := leases.Run(ctx, size, func(round int, f leases.Figure) {
		all = append(all, f)
		fmt.Printf("%5d %-17s %5.3f %5.2f %9.0f %7d %6d %8s %8s %10.1f %9.1f%%\n", round+1, f.Side, f.Cores, f.Load,
			float64(f.Reports)/size.Measure.Seconds(), f.Answers, f.Pushes, f.P50.Round(10*time.Microsecond),
			f.P99.Round(10*time.Microsecond), f.BytesPerHolder/1024, f.HasOfCent)
	})
	if err != nil || quick {
		return err
	}
	return leases.Judge(all, os.Stdout)
}
