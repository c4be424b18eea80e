// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/atoll-dev/atoll/internal/configfile"
)

// Error is every fault of a configuration.
type Error = configfile.Error

// Load reads the file at path, sets the defaults and checks the result. It fails with an *Error if the content is wrong,
// and with the error of reading the file otherwise. It does no other I/O.
func Load(path string) (*Configuration, error) {
	var c Configuration
	if err := configfile.Load(path, c.form()); err != nil {
		return nil, err
	}
	return &c, nil
}

// Parse is Load for the content of a file.
func Parse(data []byte) (*Configuration, error) {
	var c Configuration
	if err := configfile.Parse(data, c.form()); err != nil {
		return nil, err
	}
	return &c, nil
}

func (c *Configuration) form() configfile.Form {
	return configfile.Form{Into: c, Complete: c.complete, Check: c.check}
}

// complete sets the defaults.
func (c *Configuration) complete() {
	configfile.Default(&c.Serving.Address, ":8443")
	configfile.Default(&c.Health.Address, ":8081")
	configfile.Default(&c.Log.Format, "json")
	if c.Log.Requests == nil {
		c.Log.Requests = new(true)
	}
	configfile.DefaultDuration(&c.Source.CacheWait, 10*time.Second)
	configfile.DefaultDuration(&c.Source.ProbeInterval, 10*time.Second)
	configfile.DefaultDuration(&c.Limits.AnswerTimeout, 70*time.Second)
	configfile.DefaultDuration(&c.Limits.Wait, 10*time.Second)
	configfile.DefaultDuration(&c.Drain.Delay, 5*time.Second)
	configfile.DefaultDuration(&c.Drain.Timeout, 30*time.Second)
	if r := c.Authentication.TokenReview; r != nil {
		configfile.DefaultDuration(&r.CacheTTL, 10*time.Second)
		configfile.DefaultDuration(&r.Timeout, 5*time.Second)
	}
	l := &c.Limits
	for _, field := range []struct {
		value    *int
		standard int
	}{{&l.Requests, 400}, {&l.RequestsPerRegion, 100}, {&l.RequestsPerUser, 100}, {&l.StreamsPerUser, 1000}, {&l.Waiting, 1000}} {
		configfile.Default(field.value, field.standard)
	}
	configfile.Default(&l.RegionQPS, -1)
	configfile.Default(&l.SharedWatchBytes, 256<<20)
}
