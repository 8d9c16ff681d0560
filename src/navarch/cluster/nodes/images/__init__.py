"""The images of process nodes: programs of this machine under names of images, and images that were loaded."""

from navarch.cluster.nodes.images.image import Image, ImageReference, values_of
from navarch.cluster.nodes.images.images import Images

__all__ = ["Image", "ImageReference", "Images", "values_of"]
