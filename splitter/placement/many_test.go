// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
)

// 300 clusters have long names, and the policy has bounds for 256 of them. A ConfigMap is leaving
// 299 clusters, and a workload is placed in all 300. The annotations of each of these objects stay
// below half of the size that an API server permits. The whole ConfigMap stays below 256 KiB.
func TestHundredsOfClusters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		var clusters, drained []splitter.Cluster
		var names, shares []string
		for i := range 300 {
			names = append(names, fmt.Sprintf("%03d-%s", i, strings.Repeat("c", 59)))
			clusters = append(clusters, cluster(names[i]))
			drained = append(drained, draining(clusters[i]))
			if i < 256 {
				shares = append(shares, fmt.Sprintf("{name: %s, weight: 1000000, min: 1, max: 2147483647}", names[i]))
			}
		}
		w.configMap("settings", "")
		w.create(deployments, deployment("web", 600, ", volumes: [{name: v, configMap: {name: settings}}]"))
		w.policy("all", "{dependents: true, clusters: ["+strings.Join(shares, ", ")+"]}")
		w.startPlacement(placement.Options{}, clusters...)
		w.rest()
		require.Equal(t, strings.Join(names, ","), w.annotation(deployments, "web", "placement"))
		require.Equal(t, strings.Join(names, ","), w.targets(configMaps, "settings"))

		w.set(slices.Concat(drained[:299], clusters[299:])...)
		w.rest()
		require.Equal(t, names[299], w.annotation(deployments, "web", "placement"), "it has no shards")
		require.Equal(t, strings.Join(names[:299], ","), w.annotation(configMaps, "settings", "leaving"))
		size := func(name string, annotations map[string]string) {
			total := 0
			for k, v := range annotations {
				total += len(k) + len(v)
			}
			require.Less(t, total, 128<<10, "half of what the annotations of %s may have", name)
		}
		settings := w.get(configMaps, "settings")
		size("settings", settings.GetAnnotations())
		data, err := json.Marshal(settings)
		require.NoError(t, err)
		require.Less(t, len(data), 256<<10)
		w.set(clusters...)
		w.rest()
		size("web", w.get(deployments, "web").GetAnnotations())
	})
}
