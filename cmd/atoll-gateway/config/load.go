// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Error is every fault of a configuration.
type Error struct {
	// Source is the path of the file.
	Source string
	// Lines has a line for each fault: the path of the field, the reason, and what would be accepted.
	Lines []string
}

// Error returns all lines, each with the path of the file.
func (e *Error) Error() string {
	lines := make([]string, len(e.Lines))
	for i, line := range e.Lines {
		lines[i] = e.Source + ": " + line
	}
	return strings.Join(lines, "\n")
}

// Load reads the file at path, sets the defaults and checks the result. It fails with an *Error if the content is wrong,
// and with the error of reading the file otherwise. It does no other I/O.
func Load(path string) (*Configuration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	c, err := Parse(data)
	if faults, ok := errors.AsType[*Error](err); ok {
		faults.Source = path
	}
	return c, err
}

// Parse is Load for the content of a file.
func Parse(data []byte) (*Configuration, error) {
	var c Configuration
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return nil, &Error{Source: "configuration", Lines: []string{oneLine(err)}}
	}
	c.complete()
	if lines := c.check(); len(lines) > 0 {
		return nil, &Error{Source: "configuration", Lines: lines}
	}
	return &c, nil
}

// oneLine returns the text of an error of the YAML parser in one line, without its prefixes.
func oneLine(err error) string {
	text := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "yaml: ", "json: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return strings.Join(strings.Fields(text), " ")
}

// complete sets the defaults.
func (c *Configuration) complete() {
	set(&c.Serving.Address, ":8443")
	set(&c.Health.Address, ":8081")
	set(&c.Log.Format, "json")
	if c.Log.Requests == nil {
		c.Log.Requests = new(true)
	}
	after(&c.Source.CacheWait, 10*time.Second)
	after(&c.Limits.AnswerTimeout, 70*time.Second)
	after(&c.Limits.Wait, 10*time.Second)
	after(&c.Drain.Delay, 5*time.Second)
	after(&c.Drain.Timeout, 30*time.Second)
	if r := c.Authentication.TokenReview; r != nil {
		after(&r.CacheTTL, 10*time.Second)
		after(&r.Timeout, 5*time.Second)
	}
	l := &c.Limits
	for _, field := range []struct {
		value    *int
		standard int
	}{{&l.Requests, 400}, {&l.RequestsPerRegion, 100}, {&l.RequestsPerUser, 100}, {&l.StreamsPerUser, 1000}, {&l.Waiting, 1000}} {
		set(field.value, field.standard)
	}
	set(&l.RegionQPS, -1)
	set(&l.SharedWatchBytes, 256<<20)
}

func set[T comparable](field *T, standard T) {
	if *field == *new(T) {
		*field = standard
	}
}

func after(field **metav1.Duration, standard time.Duration) {
	if *field == nil {
		*field = &metav1.Duration{Duration: standard}
	}
}
