// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %s}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.com/web}]}
`

func TestDeploymentRunsAndGoes(t *testing.T) {
	p := planetest.SharedPods(t, 1)[0]
	namespace := planetest.Namespace(t, p)
	planetest.Apply(t, p, fmt.Sprintf(web, namespace))
	c := planetest.Dynamic(t, p.Config())
	deployments := c.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace(namespace)
	planetest.Eventually(t, time.Minute, "3 of 3 ready", func(ctx context.Context) error {
		object, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if ready, _, _ := unstructured.NestedInt64(object.Object, "status", "readyReplicas"); ready != 3 {
			return fmt.Errorf("%d ready", ready)
		}
		return nil
	})
	background := metav1.DeletePropagationBackground
	require.NoError(t, deployments.Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: &background}))
	pods := c.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace)
	planetest.Eventually(t, time.Minute, "no pod is left", func(ctx context.Context) error {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d pods", len(list.Items))
		}
		return err
	})
}
