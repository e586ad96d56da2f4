// How wide an element is, in CSS pixels; 0 until it is known.
import { useEffect, useState } from "../html.js";

export function useWidth(ref) {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    // The element may be gone before the observer hears of it.
    const measure = () => { if (ref.current) setWidth(Math.max(200, ref.current.clientWidth)); };
    const observer = new ResizeObserver(measure);
    observer.observe(ref.current);
    measure();
    return () => observer.disconnect();
  }, []);
  return width;
}
