// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package synctarget

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
)

const (
	// RequestTimeout bounds one request.
	RequestTimeout = 30 * time.Second
	// ShortRetry is the retry delay of a reconcile that waits for a change which causes no event.
	ShortRetry = time.Second
)

// ClusterUID returns the UID of the namespace kube-system, which identifies a cluster.
func ClusterUID(ctx context.Context, api region.API) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	ns, err := api.Metadata().Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, "kube-system", metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("get namespace kube-system: %w", err)
	}
	return ns.UID, nil
}
