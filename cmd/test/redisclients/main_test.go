// Package redisclients_test uses the Redis protocol of headgate server with clients of Redis.
package redisclients_test
