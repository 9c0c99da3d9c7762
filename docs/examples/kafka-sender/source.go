package main

import (
	"errors"
	"log/slog"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"

	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/etcd"
	"github.com/headgate/headgate/rule"
)

// source returns the source of the limit, and a function that closes it.
func (s settings) source(logger *slog.Logger) (pace.Source, func(), error) {
	if s.etcd == "" {
		limit, err := rule.ParseLimit(s.limit)
		if err != nil {
			return nil, nil, err
		}
		plan, err := pace.EvenPlan(limit.Count, limit.Per, 1, 0)
		return pace.Static(plan), func() {}, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(s.etcd, ","), Logger: etcd.ClientLogger(logger),
		// These times detect a server that has crashed and retry it soon.
		DialKeepAliveTime: 2 * time.Second, DialKeepAliveTimeout: 2 * time.Second, MaxCallRecvMsgSize: 32 << 20,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           grpcbackoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: time.Second,
		})},
	})
	if err != nil {
		return nil, nil, err
	}
	source, err := etcd.New(etcd.Config{Client: client, Provider: s.name, Logger: logger})
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return source, func() {
		if err := client.Close(); err != nil {
			logger.Warn("cannot close etcd's client", "error", err)
		}
	}, nil
}
