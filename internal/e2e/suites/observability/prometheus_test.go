// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package observability_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/build"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/e2e/process"
)

const files = "../../../../deploy/observability"

// server is a Prometheus with the rules.
type server struct {
	*process.Process
	address string
}

// startPrometheus runs a Prometheus that scrapes the targets, and evaluates the rules, every second.
func startPrometheus(t *testing.T, targets map[string]string) *server {
	t.Helper()
	programs, err := build.Programs(t.Context(), build.Prometheus)
	require.NoError(t, err)
	dir := t.TempDir()
	var jobs []any
	for name, address := range targets {
		jobs = append(jobs, map[string]any{"job_name": name, "static_configs": []any{map[string]any{"targets": []any{address}, "labels": map[string]any{"instance": name}}}})
	}
	data, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
		"rule_files": hasty(t, dir), "scrape_configs": jobs,
	})
	require.NoError(t, err)
	path := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	s := &server{Process: process.Start(t, "prometheus", nil, programs[build.Prometheus], "--config.file="+path, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0", "--log.format=json")}
	planetest.Eventually(t, soon, "Prometheus listens", func(context.Context) error {
		entry, err := s.Entry("Listening on")
		s.address = fmt.Sprint(entry["address"])
		return err
	})
	return s
}

// hasty writes the rules into dir, and returns their paths. Their alerts wait for a second, and not for minutes.
func hasty(t *testing.T, dir string) (paths []string) {
	t.Helper()
	originals, err := filepath.Glob(filepath.Join(files, "rules", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, originals)
	for _, original := range originals {
		data, err := os.ReadFile(original)
		require.NoError(t, err)
		var rules struct {
			Groups []struct {
				Name  string           `json:"name"`
				Rules []map[string]any `json:"rules"`
			} `json:"groups"`
		}
		require.NoError(t, yaml.UnmarshalStrict(data, &rules))
		for _, g := range rules.Groups {
			for _, r := range g.Rules {
				if r["alert"] != nil {
					r["for"] = "1s"
				}
			}
		}
		data, err = yaml.Marshal(map[string]any{"groups": rules.Groups})
		require.NoError(t, err)
		path := filepath.Join(dir, filepath.Base(original))
		require.NoError(t, os.WriteFile(path, data, 0o600))
		paths = append(paths, path)
	}
	return paths
}

// get reads the data of an answer of the HTTP API.
func (s *server) get(ctx context.Context, path string, data any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+path, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return errors.New(answer.Error)
	}
	return nil
}

// query returns how many series an expression has now.
func (s *server) query(ctx context.Context, expr string) (int, error) {
	var data struct{ Result []json.RawMessage }
	err := s.get(ctx, "/api/v1/query?query="+url.QueryEscape(expr), &data)
	return len(data.Result), err
}

// await waits until the alerts of a name fire with these summaries, and with no other ones.
func (s *server) await(t *testing.T, name string, summaries ...string) {
	t.Helper()
	planetest.Eventually(t, soon, fmt.Sprintf("%s fires: %q", name, summaries), func(ctx context.Context) error {
		var data struct {
			Alerts []struct {
				Labels, Annotations map[string]string
				State               string
			}
		}
		if err := s.get(ctx, "/api/v1/alerts", &data); err != nil {
			return err
		}
		var fired []string
		for _, a := range data.Alerts {
			if a.State == "firing" && a.Labels["alertname"] == name {
				fired = append(fired, a.Annotations["summary"])
			}
		}
		if slices.Sort(fired); !slices.Equal(fired, summaries) {
			return fmt.Errorf("it fires: %q", fired)
		}
		return nil
	})
}

// awaitSeries waits until an expression has so many series.
func (s *server) awaitSeries(t *testing.T, expr string, want int) {
	t.Helper()
	planetest.Eventually(t, soon, fmt.Sprintf("%s has %d series", expr, want), func(ctx context.Context) error {
		got, err := s.query(ctx, expr)
		if err == nil && got != want {
			err = fmt.Errorf("it has %d", got)
		}
		return err
	})
}

// requireRules requires that each rule was evaluated without an error.
func (s *server) requireRules(t *testing.T) {
	t.Helper()
	planetest.Eventually(t, soon, "all rules are evaluated", func(ctx context.Context) error {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		if err := s.get(ctx, "/api/v1/rules", &data); err != nil {
			return err
		}
		n := 0
		for _, g := range data.Groups {
			for _, r := range g.Rules {
				if n++; r.Health != "ok" {
					return fmt.Errorf("%s is %s: %s", r.Name, r.Health, r.LastError)
				}
			}
		}
		if n < 50 {
			return fmt.Errorf("%d rules", n)
		}
		return nil
	})
}
