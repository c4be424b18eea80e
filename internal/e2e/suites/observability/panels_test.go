// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package observability_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// silent are the parts of queries whose event does not happen in this test, with the reason. Their metrics have labels, so
// they have no series before their first event.
var silent = map[string]string{
	"atoll_regionclaim_contradictions_total":             "needs a second central plane",
	"atoll_account_removals_total":                       "needs namespaces that end, and so kube-controller-manager",
	"atoll_account_orphans_total":                        "needs an object whose central object was lost",
	"atoll_cluster_certificate_requests_total":           "needs a cluster that joins, and so kube-controller-manager",
	"atoll_cluster_certificate_renewals_total":           "as above",
	"atoll_cluster_certificate_expiry_timestamp_seconds": "as above",
	"atoll_wal_compaction_duration_seconds":              "needs a journal above 8 MiB",
	"atoll_router_budget_wait_seconds":                   "needs more requests than the budget of a region",
}

// requirePanels requires that each query of each dashboard has a result.
func requirePanels(t *testing.T, s *server) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(files, "dashboards", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	exprs := map[string]string{}
	skipped := 0
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		var d struct {
			Panels []struct {
				Title   string
				Targets []struct{ RefID, Expr string }
			}
		}
		require.NoError(t, json.Unmarshal(data, &d))
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				if isSilent(q.Expr) {
					skipped++
					continue
				}
				exprs[fmt.Sprintf("%s, %s, %s", filepath.Base(path), p.Title, q.RefID)] = strings.ReplaceAll(q.Expr, "$__rate_interval", "10m")
			}
		}
	}
	require.Greater(t, len(exprs), 60)
	n := len(exprs)
	planetest.Eventually(t, soon, "each query of a dashboard has a result", func(ctx context.Context) error {
		var faults []error
		for where, expr := range exprs {
			switch series, err := s.query(ctx, expr); {
			case err != nil:
				faults = append(faults, fmt.Errorf("%s: %w", where, err))
			case series == 0:
				faults = append(faults, fmt.Errorf("%s: no data: %s", where, expr))
			default:
				delete(exprs, where)
			}
		}
		return errors.Join(faults...)
	})
	t.Logf("%d queries of dashboards have results; the events of %d do not happen here", n, skipped)
}

func isSilent(expr string) bool {
	for metric := range silent {
		if strings.Contains(expr, metric) {
			return true
		}
	}
	return false
}
