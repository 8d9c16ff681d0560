import sys

from kubernetes_api.cli import main

sys.exit(main())
