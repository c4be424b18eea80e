// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// setReader reads PeerSets. It always asks the peer, but decodes an answer only if the bytes
// differ from the peer's last answer. Decoding is the cost: each operation reads the PeerSet of
// every peer, and each PeerSet lists all members.
type setReader struct {
	codecs runtime.NegotiatedSerializer

	mu    sync.Mutex
	known map[region.PeerName]*knownSet
	// The lists of members that were last decoded; equal lists share memory.
	listed  []v1alpha1.Member
	members []protocol.Member
}

// knownSet is the last answer of a peer.
type knownSet struct {
	conn   *region.Conn
	client rest.Interface
	sum    [sha256.Size]byte
	set    *readSet // nil before the first answer
}

// readSet is a PeerSet as read. It is shared and must not be modified.
type readSet struct {
	*v1alpha1.PeerSet // without managed fields

	view protocol.PeerSet
}

func newSetReader() *setReader {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // the API version of errors
	return &setReader{codecs: serializer.NewCodecFactory(scheme).WithoutConversion(), known: map[region.PeerName]*knownSet{}}
}

// read reads the PeerSet of a peer.
func (s *setReader) read(ctx context.Context, conn *region.Conn) (*readSet, error) {
	client, err := s.clientFor(conn)
	if err != nil {
		return nil, err
	}
	result := client.Get().AbsPath("/apis", peerSets.Group, peerSets.Version, peerSets.Resource, v1alpha1.PeerSetName).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	body, err := result.Raw()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	s.mu.Lock()
	known := s.known[conn.Peer()]
	if known != nil && known.set != nil && known.sum == sum {
		defer s.mu.Unlock()
		return known.set, nil
	}
	s.mu.Unlock()
	var set v1alpha1.PeerSet
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("PeerSet: %w", err)
	}
	set.ManagedFields = nil
	read := &readSet{PeerSet: &set, view: viewPeerSet(&set)}
	s.mu.Lock()
	defer s.mu.Unlock()
	set.Spec.Members, s.listed = common(set.Spec.Members, s.listed)
	read.view.Members, s.members = common(read.view.Members, s.members)
	if known := s.known[conn.Peer()]; known != nil {
		known.sum, known.set = sum, read
	}
	return read, nil
}

// common lets equal lists share memory. The parameter had is the result now of the previous call.
// If list equals had, common returns had twice, and otherwise list twice.
func common[T comparable](list, had []T) (shared, now []T) {
	if slices.Equal(list, had) {
		return had, had
	}
	return list, list
}

// clientFor returns a peer's client, and makes one for each new connection.
func (s *setReader) clientFor(conn *region.Conn) (rest.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known[conn.Peer()]; known != nil && known.conn == conn {
		return known.client, nil
	}
	config := conn.Config()
	config.NegotiatedSerializer = s.codecs
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	s.known[conn.Peer()] = &knownSet{conn: conn, client: client}
	return client, nil
}
