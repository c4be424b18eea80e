// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	operatorv1alpha1 "github.com/atoll-dev/atoll/region/operator/v1alpha1"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
)

var (
	carrierResource   = operatorv1alpha1.GroupVersion.WithResource("kubecarriers")
	claimResource     = regionv1alpha1.GroupVersion.WithResource("regionclaims")
	namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// inspection is the result of inspecting a cluster that is not accepted as a peer. The inspection is read-only.
type inspection struct {
	creds   string // the credentials that were used
	next    time.Time
	uid     types.UID
	master  bool
	looked  bool
	missing error // not nil if types or rights that a peer needs are missing
	err     error // why the cluster is unreachable
}

// lookTimeout bounds one inspection of a cluster.
const lookTimeout = 5 * time.Second

// inspect reads the UID of a cluster, and determines whether the cluster may be a peer, over a separate connection.
func inspect(ctx context.Context, name region.PeerName, creds region.Credentials) inspection {
	l := inspection{creds: creds.String()}
	conn, err := region.NewConn(region.Peer{Name: name, Credentials: creds}, region.ConnOptions{})
	if err != nil {
		l.err = err
		return l
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if l.uid, l.err = conn.UID(ctx); l.err != nil {
		return l
	}
	carriers, err := conn.Dynamic().Resource(carrierResource).List(ctx, metav1.ListOptions{})
	if err == nil {
		for i := range carriers.Items {
			l.master = l.master || isMaster(&carriers.Items[i])
		}
		l.looked = true
		_, err = conn.Dynamic().Resource(claimResource).List(ctx, metav1.ListOptions{Limit: 1})
	}
	switch {
	case err == nil:
	case isMissing(err):
		l.missing = err
	default:
		l.err = err
	}
	return l
}

// isMissing reports whether err concerns types or rights, not the connection.
func isMissing(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) }

// isMaster reports whether a KubeCarrier has spec.master: true.
func isMaster(carrier *unstructured.Unstructured) bool {
	master, _, _ := unstructured.NestedBool(carrier.Object, "spec", "master")
	return master
}

// health returns the health of the connection during the inspection.
func (l *inspection) health() region.Health {
	if l.err != nil {
		return region.Health{State: region.Unhealthy, Err: l.err}
	}
	return region.Health{State: region.Healthy, LastContact: time.Now()}
}

// versionLabel is the label in which installers write the installed version.
const versionLabel = "app.kubernetes.io/version"

// maxVersion bounds the response of a peer's /version, in bytes.
const maxVersion = 64 << 10

// serverVersion reads the version of a peer's API server.
func serverVersion(ctx context.Context, conn *region.Conn) (masterv1alpha1.VersionInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	config := conn.Config()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/version", http.NoBody)
	if err != nil {
		return masterv1alpha1.VersionInfo{}, err
	}
	resp, err := config.Transport.RoundTrip(req)
	if err != nil {
		return masterv1alpha1.VersionInfo{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return masterv1alpha1.VersionInfo{}, &region.Error{Peer: conn.Peer(), Op: "read version", Err: errors.New(resp.Status)}
	}
	var info version.Info
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxVersion)).Decode(&info); err != nil {
		return masterv1alpha1.VersionInfo{}, &region.Error{Peer: conn.Peer(), Op: "read version", Err: err}
	}
	v := masterv1alpha1.VersionInfo{
		Version: clip(info.GitVersion, 128), Commit: clip(info.GitCommit, 128), GoVersion: clip(info.GoVersion, 64), Platform: clip(info.Platform, 64),
	}
	if built, err := time.Parse(time.RFC3339, info.BuildDate); err == nil {
		v.BuildDate = metav1.NewTime(built)
	}
	return v, nil
}

// clip returns at most the first most bytes of s; most is the limit of the schema.
func clip(s string, most int) string {
	if len(s) > most {
		return s[:most]
	}
	return s
}

// planeUID reads the UID of the plane's kube-system namespace, which identifies its cluster.
func planeUID(ctx context.Context, plane region.API) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	obj, err := plane.Metadata().Resource(namespaceResource).Get(ctx, "kube-system", metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("central plane: get namespace kube-system: %w", err)
	}
	return obj.UID, nil
}
