// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// The request of a pod is that which the scheduler counts.
func TestPodRequest(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want amounts
	}{
		"nothing":                {`{}`, amounts{}},
		"containers":             {`{containers: [{resources: {requests: {cpu: 100m, memory: 1Mi}}}, {resources: {requests: {cpu: 1, example.com/gpu: 2}}}, {}]}`, amounts{"cpu": 1100, "memory": 1024, "example.com/gpu": 2}},
		"limits are the default": {`{containers: [{resources: {limits: {cpu: 2, memory: 2Ki}, requests: {cpu: 1}}}]}`, amounts{"cpu": 1000, "memory": 2}},
		"containers that run before": {`{initContainers: [{resources: {requests: {cpu: 3}}}, {resources: {requests: {cpu: 2, memory: 9Ki}}}], containers: [{resources: {requests: {cpu: 1, memory: 1Ki}}}]}`,
			amounts{"cpu": 3000, "memory": 9}},
		"a sidecar adds": {`{initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}], containers: [{resources: {requests: {cpu: 2}}}]}`, amounts{"cpu": 3000}},
		"sidecars run with later containers only": {`{initContainers: [{resources: {requests: {cpu: 5}}}, {restartPolicy: Always, resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 5}}}, {restartPolicy: Always, resources: {requests: {cpu: 2}}}], containers: [{resources: {requests: {cpu: 1}}}]}`,
			amounts{"cpu": 6000}},
		"all sidecars before the containers": {`{initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 4}}}, {restartPolicy: Always, resources: {requests: {cpu: 2}}}]}`, amounts{"cpu": 6000}},
		"the whole pod":                      {`{resources: {requests: {cpu: 1}, limits: {cpu: 9, memory: 4Ki}}, containers: [{resources: {requests: {cpu: 3}}}]}`, amounts{"cpu": 1000, "memory": 4}},
		"overhead":                           {`{overhead: {cpu: 250m, memory: 1Ki}, containers: [{resources: {requests: {cpu: 3}}}]}`, amounts{"cpu": 3250, "memory": 1}},
		"rounded up":                         {`{containers: [{resources: {requests: {cpu: 100u, memory: 1, ephemeral-storage: 1025, example.com/gpu: 500m}}}]}`, amounts{"cpu": 1, "memory": 1, "ephemeral-storage": 2, "example.com/gpu": 1}},
		"unreadable and negative":            {`{containers: [{resources: {requests: {cpu: lots, memory: -1, pods: 7}}}, 5, {resources: 3}], overhead: []}`, amounts{"memory": 0}},
		"too much":                           {`{containers: [{resources: {requests: {cpu: 9E, memory: 9000E, example.com/gpu: 9E}}}, {resources: {requests: {cpu: 9E}}}]}`, amounts{"cpu": most, "memory": most, "example.com/gpu": most}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{}
			require.NoError(t, yaml.Unmarshal([]byte(c.spec), &spec))
			c.want["pods"] = 1
			require.Equal(t, c.want, podRequest(map[string]any{"spec": spec}))
		})
	}
}

func TestCapacityIsRoundedDown(t *testing.T) {
	list := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{"cpu": "3920m", "memory": "2047", "ephemeral-storage": "2048", "pods": "110", "example.com/gpu": "0"} {
		list[name] = resource.MustParse(text)
	}
	require.Equal(t, amounts{"cpu": 3920, "memory": 1, "ephemeral-storage": 2, "pods": 110, "example.com/gpu": 0}, capacityOf(list))
	require.Equal(t, amounts{"cpu": 0, "memory": most}, amounts{"cpu": 0, "memory": most / 2}.times(3))
	require.Equal(t, amounts{"cpu": 0}, amounts{"cpu": 5}.times(0))
}
